/** What the proxy needs to know about sandboxes; the server answers it from the orchestrator. */

export type ProxyRoute =
  | {
      kind: 'running';
      /** Address at which every port of the guest is reached. */
      address: string;
      secure: boolean;
    }
  | {
      kind: 'paused';
      /** True: the request may wake it (`wake`), after the token check when there is a token. */
      autoResume: boolean;
      envdAccessToken?: string;
    }
  | { kind: 'unknown' };

export interface RouteSource {
  /** Looks one sandbox up; called for every request, so it must not do I/O. */
  route(sandboxId: string): ProxyRoute;
  /** Resumes a paused sandbox; concurrent calls share one resume. Rejects with an AenvError. */
  wake(sandboxId: string): Promise<void>;
}
