/** One answer of a sandbox on its way to a client, without a stream in between: what comes in is written out. */
import type { ServerResponse } from 'node:http';
import { constants, type Http2ServerResponse } from 'node:http2';
import type { Dispatcher } from 'undici';
import type { RequestHeaders } from './classify.ts';
import { endToEnd } from './headers.ts';

export class Passing implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  readonly #onFailure: (error: Error) => void;
  #controller: Dispatcher.DispatchController | undefined;

  /** `onFailure` answers the client when the sandbox did not; it is not called once the client has gone. */
  constructor(response: ServerResponse, onFailure: (error: Error) => void) {
    this.#response = response;
    this.#onFailure = onFailure;
    response.once('close', () => this.#abandon());
    response.on('drain', () => this.#controller?.resume());
  }

  #abandon(): void {
    if (!this.#response.writableFinished) this.#controller?.abort(new Error('the client has gone'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#response.destroyed) this.#abandon();
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: RequestHeaders): void {
    const response = this.#response;
    response.writeHead(status, endToEnd(headers));
    // A client that waits for the first event of a stream must see that the stream is there; a short answer goes out whole.
    setImmediate(() => {
      if (!response.destroyed) response.flushHeaders?.();
    });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#response.write(chunk)) controller.pause();
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: Record<string, string | string[]>): void {
    if (Object.keys(trailers).length > 0) this.#response.addTrailers(trailers as Record<string, string>);
    this.#response.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const response = this.#response;
    if (response.headersSent) breakOff(response);
    else if (!response.destroyed) this.#onFailure(error);
  }
}

/** Ends an answer so that half of it does not look like a whole one. */
export function breakOff(response: ServerResponse | Http2ServerResponse): void {
  // To destroy an HTTP/2 stream says that there was no error.
  if ('stream' in response) response.stream?.close(constants.NGHTTP2_INTERNAL_ERROR);
  else response.destroy();
}
