// Generated from spec/openapi/ by `npm run gen`; do not edit.
export interface paths {
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Answers 204 as long as the server takes requests. Needs no key. */
        get: operations["health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/doctor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the machine has and lacks, as `aenv doctor` shows it */
        get: operations["doctor"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Version of the server, sandboxes by state, and counts of operations */
        get: operations["stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/gc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Free what can be made again and nothing needs */
        post: operations["collectGarbage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/node": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the machine has to give, and what it has promised */
        get: operations["node"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is on the machine that no record owns, and what records miss */
        get: operations["audit"];
        put?: never;
        /** The same, and remove what no record owns */
        post: operations["repair"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Long operations in progress and those that ended lately, newest first */
        get: operations["listOperations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/teams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The one project of this server; E2B's CLI asks for it when it logs in */
        get: operations["listTeams"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Running sandboxes, newest first, all in one answer (E2B's v1) */
        get: operations["listRunningSandboxes"];
        put?: never;
        /** Start a sandbox from a template (E2B's v1; secure only where `secure` is true) */
        post: operations["createSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/sandboxes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Running and paused sandboxes, by page */
        get: operations["listSandboxes"];
        put?: never;
        /** Start a sandbox from a template; always secure */
        post: operations["createSandboxV2"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes-cold": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start a sandbox straight from an image; the first start of an image takes as long as a build */
        post: operations["createColdSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The newest sample of each of these sandboxes; those that do not exist are left out */
        get: operations["listSandboxMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        /** One sandbox, running or paused */
        get: operations["getSandbox"];
        put?: never;
        post?: never;
        /** Kill a sandbox, or delete a paused one; returns when nothing of it is left */
        delete: operations["killSandbox"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Save memory and disk, and free the machine's resources; 409 when it is paused already */
        post: operations["pauseSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resume a paused sandbox; 409 when it is running (older SDKs; newer ones use connect) */
        post: operations["resumeSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}/connect": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resume it when it is paused; when it is running only ever prolong its timeout (E2B's v1) */
        post: operations["connectSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/sandboxes/{sandboxID}/connect": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** As v1, with an optional body and a default timeout of 300 seconds */
        post: operations["connectSandboxV2"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}/timeout": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Count the timeout anew from now; may shorten it, and 0 strikes at once */
        post: operations["setSandboxTimeout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}/refreshes": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Prolong the timeout; never shortens it */
        post: operations["refreshSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        /** CPU, memory and disk over time, oldest first */
        get: operations["getSandboxMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        /** What happened to the sandbox and its console, oldest first (E2B's v1) */
        get: operations["getSandboxLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/sandboxes/{sandboxID}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        /** Log entries from a point in time, in either direction, by level and text */
        get: operations["getSandboxLogsV2"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Register a template, or a new build of one that exists; the build waits until it is started */
        post: operations["requestTemplate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All templates in one answer, newest first (E2B's v1) */
        get: operations["listAllTemplates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Templates by page, newest first */
        get: operations["listTemplates"];
        put?: never;
        /** As v3, for SDKs of 2025 */
        post: operations["requestTemplateV2"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/templates/{templateID}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
            };
            cookie?: never;
        };
        /** One template and its builds, newest first */
        get: operations["getTemplate"];
        put?: never;
        post?: never;
        /** Delete a template; 409 while a sandbox needs it */
        delete: operations["deleteTemplate"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/templates/aliases/{alias}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                alias: components["schemas"]["TemplateReference"];
            };
            cookie?: never;
        };
        /** The id behind a name */
        get: operations["resolveAlias"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/templates/{templateID}/builds/{buildID}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
                buildID: components["parameters"]["buildID"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start a build that waits; answers at once */
        post: operations["startBuild"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/templates/{templateID}/builds/{buildID}/status": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
                buildID: components["parameters"]["buildID"];
            };
            cookie?: never;
        };
        /** State of a build, and its log from an offset on */
        get: operations["getBuildStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/templates/{templateID}/builds/{buildID}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
                buildID: components["parameters"]["buildID"];
            };
            cookie?: never;
        };
        /** Log of a build from a point in time, in either direction */
        get: operations["getBuildLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Copy memory and disk of a running sandbox, which goes on at once; the copy starts like a template */
        post: operations["createSnapshot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Snapshots by page, newest first */
        get: operations["listSnapshots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start new sandboxes with the state of a running one, which goes on at once */
        post: operations["forkSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Put the state of a snapshot in the place of a running sandbox's, under the same id */
        post: operations["rollbackSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/snapshots/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is other in one snapshot than in another, found without starting either */
        get: operations["compareSnapshots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lineage/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description A sandbox (also one that has ended) or a snapshot */
                id: components["schemas"]["TemplateReference"];
            };
            cookie?: never;
        };
        /** The family of a sandbox or snapshot, parents before their children */
        get: operations["getLineage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandboxes/{sandboxID}/network": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        get?: never;
        /** Not supported */
        put: operations["updateSandboxNetwork"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/templates/{templateID}/files/{hash}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
                hash: string;
            };
            cookie?: never;
        };
        /** Not supported */
        get: operations["getTemplateFileLink"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/templates/{templateID}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Not supported */
        patch: operations["publishTemplate"];
        trace?: never;
    };
    "/templates/tags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Not supported */
        post: operations["assignTemplateTags"];
        /** Not supported */
        delete: operations["deleteTemplateTags"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/templates/{templateID}/tags": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
            };
            cookie?: never;
        };
        /** Not supported */
        get: operations["listTemplateTags"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/volumes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Not supported */
        get: operations["listVolumes"];
        put?: never;
        /** Not supported */
        post: operations["createVolume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/volumes/{volumeID}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                volumeID: string;
            };
            cookie?: never;
        };
        /** Not supported */
        get: operations["getVolume"];
        put?: never;
        post?: never;
        /** Not supported */
        delete: operations["deleteVolume"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Not supported */
        get: operations["listSecrets"];
        put?: never;
        /** Not supported */
        post: operations["createSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/secrets/{secretID}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                secretID: string;
            };
            cookie?: never;
        };
        /** Not supported */
        get: operations["getSecret"];
        put?: never;
        /** Not supported */
        post: operations["updateSecret"];
        /** Not supported */
        delete: operations["deleteSecret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Error: {
            /** @description The HTTP status */
            code: number;
            /** @description What went wrong */
            message: string;
            /** @description Stable, machine-readable cause (docs/errors.md) */
            error_code: string;
            /** @description What to do about it */
            remedy?: string;
        };
        DoctorFinding: {
            /** @description Such as `qemu`, `accelerator`, `nftables`, `disk` */
            check: string;
            /** @enum {string} */
            status: "ok" | "warn" | "fail";
            /** @description What was found, with versions and figures */
            detail: string;
            /** @description What to do */
            remedy?: string;
        };
        DoctorReport: {
            findings: components["schemas"]["DoctorFinding"][];
        };
        Stats: {
            /** @description Of the server */
            version: string;
            running: number;
            paused: number;
            /** @description Network slots that wait for a sandbox */
            slotsReady: number;
            pool: {
                /** @description Restored VMs that wait for a sandbox */
                ready: number;
                /** @description Starts that found one, since the server started */
                hits: number;
                /** @description Starts that did not, since the server started */
                misses: number;
            };
            /** @description By operation, since the server started */
            operations: {
                [key: string]: {
                    succeeded: number;
                    failed: number;
                    /** @description Taken by all of them together */
                    seconds: number;
                };
            };
        };
        CollectGarbage: {
            /** @description Only tell what would go; false without it */
            dryRun?: boolean;
        };
        Garbage: {
            /** @enum {string} */
            kind: "image_disk";
            name: string;
            /** @description On the disk */
            bytes: number;
            why: string;
        };
        Node: {
            /** @description Sandboxes that run or are about to */
            running: number;
            maxRunning: number;
            /** @description Starts that wait for room */
            waiting: number;
            memoryMB: {
                /** @description Of the machine */
                total: number;
                /** @description Of the machine */
                free: number;
                /** @description To running sandboxes */
                promised: number;
                /** @description As much as may be promised */
                limit: number;
            };
            freeDiskMB: number;
        };
        AuditFinding: {
            /** @enum {string} */
            kind: "vm" | "slot" | "sandbox_files" | "template_files" | "run_directory" | "layer" | "namespace" | "cgroup" | "missing_vm" | "missing_state" | "missing_layer";
            name: string;
            detail: string;
            /** @description Whether it has been removed now */
            removed?: boolean;
        };
        AuditReport: {
            findings: components["schemas"]["AuditFinding"][];
        };
        /** @enum {string} */
        OperationState: "running" | "succeeded" | "failed" | "interrupted";
        Operation: {
            operationID: string;
            /** @enum {string} */
            kind: "start" | "pause" | "resume" | "snapshot" | "fork" | "rollback" | "kill" | "build";
            sandboxID?: string;
            buildID?: string;
            /** @description Counts the operations of the sandbox or build */
            generation: number;
            /** @description The last one that it reached */
            phase: string;
            /** @description `interrupted`: the server ended meanwhile, and its next start finished or undid it */
            state: components["schemas"]["OperationState"];
            /** Format: date-time */
            startedAt: string;
            /**
             * Format: date-time
             * @description It has ended by then
             */
            deadlineAt: string;
            /** Format: date-time */
            endedAt?: string;
            error?: components["schemas"]["Error"];
        };
        Team: {
            teamID: string;
            name: string;
            /** @description The key that the request came with */
            apiKey: string;
            isDefault: boolean;
        };
        Metadata: {
            [key: string]: string;
        };
        /** @enum {string} */
        SandboxState: "running" | "paused";
        ListedSandbox: {
            templateID: string;
            sandboxID: string;
            /** @description First name of the template */
            alias?: string;
            clientID: string;
            /**
             * Format: date-time
             * @description Start of the present run
             */
            startedAt: string;
            /**
             * Format: date-time
             * @description When the timeout strikes; for a paused sandbox when it was paused
             */
            endAt: string;
            cpuCount: number;
            memoryMB: number;
            diskSizeMB: number;
            metadata: components["schemas"]["Metadata"];
            state: components["schemas"]["SandboxState"];
            envdVersion: string;
        };
        /** @description Template id, name, or `name:tag`; case and surrounding blanks do not matter. */
        TemplateReference: string;
        /**
         * Format: int32
         * @description Seconds from now. The server's configuration sets the longest.
         */
        Timeout: number;
        AutoResume: {
            /** @description Resume when a request reaches the paused sandbox */
            enabled: boolean;
        };
        /** @description Only defaults are accepted; `allow_internet_access` is the one policy there is. */
        Network: {
            /** @description Refused when false */
            allowPublicTraffic?: boolean;
            /** @description Refused when not empty */
            allowOut?: string[];
            /** @description Refused when not empty */
            denyOut?: string[];
            /** @description Refused */
            egressProxy?: Record<string, never> | null;
            /** @description Refused */
            maskRequestHost?: string;
            /** @description Refused when not empty */
            rules?: Record<string, never>;
            /** @description Refused when not empty */
            httpsPorts?: number[];
        };
        /** @description A name holds no `=`, and neither name nor value a NUL character. */
        EnvVars: {
            [key: string]: string;
        };
        VolumeMount: {
            name: string;
            path: string;
        };
        NewSandbox: {
            templateID: components["schemas"]["TemplateReference"];
            /** @description Ours. Of a snapshot, an older one will do when the newest under this name is not ready */
            allowOlder?: boolean;
            /** @description 15 without it */
            timeout?: components["schemas"]["Timeout"];
            /** @description Pause at the timeout instead of killing; false without it */
            autoPause?: boolean;
            /** @description When false, a pause at the timeout keeps only the disk; true without it */
            autoPauseMemory?: boolean;
            autoResume?: components["schemas"]["AutoResume"];
            /** @description The guest daemon asks for `envdAccessToken`; false without it */
            secure?: boolean;
            /** @description true without it */
            allow_internet_access?: boolean;
            network?: components["schemas"]["Network"];
            metadata?: components["schemas"]["Metadata"];
            envVars?: components["schemas"]["EnvVars"];
            /** @description Refused */
            mcp?: Record<string, never> | null;
            /** @description Refused when not empty */
            iam?: Record<string, never>;
            /** @description Refused when not empty */
            volumeMounts?: components["schemas"]["VolumeMount"][];
        };
        Sandbox: {
            templateID: string;
            sandboxID: string;
            /** @description First name of the template */
            alias?: string;
            /** @description Constant; older SDKs append it to the id */
            clientID: string;
            envdVersion: string;
            /** @description Present for secure sandboxes */
            envdAccessToken?: string;
            trafficAccessToken?: string | null;
            /** @description Its ports are reached at `PORT-ID.domain` */
            domain: string | null;
        };
        NewSandboxV2: {
            templateID: components["schemas"]["TemplateReference"];
            /** @description Ours. Of a snapshot, an older one will do when the newest under this name is not ready */
            allowOlder?: boolean;
            /** @description 300 without it */
            timeout?: components["schemas"]["Timeout"];
            /** @description Pause at the timeout instead of killing; false without it */
            autoPause?: boolean;
            /** @description When false, a pause at the timeout keeps only the disk; true without it */
            autoPauseMemory?: boolean;
            autoResume?: components["schemas"]["AutoResume"];
            /** @description true without it */
            allow_internet_access?: boolean;
            network?: components["schemas"]["Network"];
            metadata?: components["schemas"]["Metadata"];
            envVars?: components["schemas"]["EnvVars"];
            /** @description Refused */
            mcp?: Record<string, never> | null;
            /** @description Refused when not empty */
            iam?: Record<string, never>;
            /** @description Refused when not empty */
            volumeMounts?: components["schemas"]["VolumeMount"][];
        };
        /** @description Such as `ubuntu:22.04`, `ghcr.io/owner/name@sha256:…`. */
        ImageReference: string;
        /** @description Credentials for the registry. `aws` and `gcp` are refused. */
        ImageRegistry: {
            /** @enum {string} */
            type: "registry" | "aws" | "gcp";
            username?: string;
            password?: string;
        };
        /** @description Cores */
        CPUCount: number;
        /** @description MiB */
        MemoryMB: number;
        /** @description Size of the root disk, MiB */
        DiskSizeMB: number;
        NewColdSandbox: {
            image: components["schemas"]["ImageReference"];
            imageRegistry?: components["schemas"]["ImageRegistry"];
            cpuCount?: components["schemas"]["CPUCount"];
            memoryMB?: components["schemas"]["MemoryMB"];
            diskSizeMB?: components["schemas"]["DiskSizeMB"];
            /** @description 300 without it */
            timeout?: components["schemas"]["Timeout"];
            /** @description Pause at the timeout instead of killing; false without it */
            autoPause?: boolean;
            /** @description When false, a pause at the timeout keeps only the disk; true without it */
            autoPauseMemory?: boolean;
            autoResume?: components["schemas"]["AutoResume"];
            /** @description The guest daemon asks for `envdAccessToken`; true without it */
            secure?: boolean;
            /** @description true without it */
            allow_internet_access?: boolean;
            network?: components["schemas"]["Network"];
            metadata?: components["schemas"]["Metadata"];
            envVars?: components["schemas"]["EnvVars"];
            /** @description Refused when not empty */
            volumeMounts?: components["schemas"]["VolumeMount"][];
        };
        SandboxMetric: {
            /** Format: date-time */
            timestamp: string;
            /** @description Seconds */
            timestampUnix: number;
            cpuCount: number;
            /** @description Of all cores, 0 to 100 */
            cpuUsedPct: number;
            /** @description Bytes */
            memUsed: number;
            /** @description Bytes */
            memTotal: number;
            /** @description Bytes */
            memCache: number;
            /** @description Bytes */
            diskUsed: number;
            /** @description Bytes */
            diskTotal: number;
        };
        SandboxesWithMetrics: {
            sandboxes: {
                [key: string]: components["schemas"]["SandboxMetric"];
            };
        };
        SandboxDetail: {
            templateID: string;
            sandboxID: string;
            /** @description First name of the template */
            alias?: string;
            clientID: string;
            /**
             * Format: date-time
             * @description Start of the present run
             */
            startedAt: string;
            /**
             * Format: date-time
             * @description When the timeout strikes; for a paused sandbox when it was paused
             */
            endAt: string;
            cpuCount: number;
            memoryMB: number;
            diskSizeMB: number;
            metadata: components["schemas"]["Metadata"];
            state: components["schemas"]["SandboxState"];
            envdVersion: string;
            /** @description Present for secure sandboxes */
            envdAccessToken?: string;
            allowInternetAccess: boolean;
            domain: string | null;
            lifecycle: {
                autoResume: boolean;
                /** @enum {string} */
                onTimeout: "kill" | "pause";
            };
        };
        PauseSandbox: {
            /** @description When false, only the disk is kept, and the sandbox boots when it is resumed; true without it */
            memory?: boolean;
        };
        /**
         * Format: int32
         * @description Seconds from now. The server's configuration sets the longest.
         */
        RunTimeout: number;
        ResumeSandbox: {
            /** @description 15 without it */
            timeout?: components["schemas"]["RunTimeout"];
            /** @description The sandbox keeps what it was created with; true is refused for one that does not pause */
            autoPause?: boolean;
            /** @description When false, a paused sandbox boots from its disk, even when its memory was kept; true without it */
            memory?: boolean;
        };
        ConnectSandbox: {
            timeout: components["schemas"]["RunTimeout"];
            /** @description When false, a paused sandbox boots from its disk, even when its memory was kept; true without it */
            memory?: boolean;
        };
        ConnectSandboxV2: {
            /** @description 300 without it */
            timeout?: components["schemas"]["RunTimeout"];
            /** @description When false, a paused sandbox boots from its disk, even when its memory was kept; true without it */
            memory?: boolean;
        };
        SandboxTimeout: {
            timeout: components["schemas"]["RunTimeout"];
        };
        RefreshSandbox: {
            /** @description Seconds from now, at least 15; 15 without it */
            duration?: number;
        };
        /** @description Seconds since 1970-01-01 UTC */
        EpochSeconds: number;
        /** @description Milliseconds since 1970-01-01 UTC */
        EpochMilliseconds: number;
        SandboxLog: {
            /** Format: date-time */
            timestamp: string;
            /** @description JSON with `level`, `logger`, `message` and the entry's own fields */
            line: string;
        };
        /** @enum {string} */
        LogLevel: "debug" | "info" | "warn" | "error";
        SandboxLogEntry: {
            /** Format: date-time */
            timestamp: string;
            message: string;
            level: components["schemas"]["LogLevel"];
            fields: {
                [key: string]: string;
            };
        };
        SandboxLogs: {
            logs: components["schemas"]["SandboxLog"][];
            logEntries: components["schemas"]["SandboxLogEntry"][];
        };
        SandboxLogsV2: {
            logs: components["schemas"]["SandboxLogEntry"][];
        };
        NewTemplate: {
            /** @description A name that exists gets a new build of the same template. */
            name?: components["schemas"]["TemplateReference"];
            /** @description Older word for `name` */
            alias?: components["schemas"]["TemplateReference"];
            tags?: string[];
            cpuCount?: components["schemas"]["CPUCount"];
            memoryMB?: components["schemas"]["MemoryMB"];
            /** @description Refused when above 0; `diskSizeMB` of the build sets the size */
            minFreeDiskMb?: number;
        };
        RequestedTemplate: {
            templateID: string;
            /** Format: uuid */
            buildID: string;
            public: boolean;
            names: string[];
            tags: string[];
            aliases: string[];
        };
        /** @enum {string} */
        BuildStatus: "building" | "waiting" | "ready" | "error";
        Template: {
            templateID: string;
            /** Format: uuid */
            buildID: string;
            cpuCount: number;
            memoryMB: number;
            /** @description 0 until the disk exists */
            diskSizeMB: number;
            public: boolean;
            aliases: string[];
            names: string[];
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            updatedAt: string;
            /** @description There are no users */
            createdBy: null;
            /** Format: date-time */
            lastSpawnedAt: string | null;
            spawnCount: number;
            buildCount: number;
            /** @description Empty until it is built */
            envdVersion: string;
            buildStatus: components["schemas"]["BuildStatus"];
        };
        TemplateBuild: {
            /** Format: uuid */
            buildID: string;
            status: components["schemas"]["BuildStatus"];
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            updatedAt: string;
            /** Format: date-time */
            finishedAt?: string;
            cpuCount: number;
            memoryMB: number;
            diskSizeMB?: number;
            envdVersion?: string;
        };
        TemplateWithBuilds: {
            templateID: string;
            public: boolean;
            aliases: string[];
            names: string[];
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            updatedAt: string;
            /** Format: date-time */
            lastSpawnedAt: string | null;
            spawnCount: number;
            builds: components["schemas"]["TemplateBuild"][];
        };
        TemplateAlias: {
            templateID: string;
            public: boolean;
        };
        TemplateStep: {
            type: string;
            args?: string[];
            filesHash?: string;
            force?: boolean;
        };
        /** @description Exactly one of `fromImage` and `fromTemplate`. */
        StartBuild: {
            fromImage?: components["schemas"]["ImageReference"];
            fromTemplate?: components["schemas"]["TemplateReference"];
            fromImageRegistry?: components["schemas"]["ImageRegistry"];
            /** @description Nothing is skipped here in any case */
            force?: boolean;
            /** @description Refused when not empty */
            steps?: components["schemas"]["TemplateStep"][];
            /** @description Runs in the guest until the capture and goes on in every sandbox */
            startCmd?: string;
            /** @description Polled until it exits with 0 before the capture */
            readyCmd?: string;
            /** @description Not E2B's */
            diskSizeMB?: components["schemas"]["DiskSizeMB"];
        };
        BuildLogEntry: {
            /** Format: date-time */
            timestamp: string;
            message: string;
            level: components["schemas"]["LogLevel"];
            step?: string;
        };
        BuildInfo: {
            logs: string[];
            logEntries: components["schemas"]["BuildLogEntry"][];
            templateID: string;
            /** Format: uuid */
            buildID: string;
            status: components["schemas"]["BuildStatus"];
            reason?: {
                message: string;
                /** @description `base`, the number of a step, or `finalize` */
                step?: string;
                logEntries?: components["schemas"]["BuildLogEntry"][];
            };
        };
        BuildLogs: {
            logs: components["schemas"]["BuildLogEntry"][];
        };
        NewSnapshot: {
            /** @description A name that exists gets a newer snapshot; without one the snapshot has only its id. */
            name?: components["schemas"]["TemplateReference"];
            /** @description Ours. When false, only the disk is copied, and what starts from the snapshot boots; true without it */
            memory?: boolean;
        };
        /** @enum {string} */
        SnapshotState: "creating" | "ready" | "failed";
        Snapshot: {
            /** @description What a start names: `ID:TAG`, or `NAME:TAG` when it has a name */
            snapshotID: string;
            names: string[];
            /** @description Ours. The sandbox that it was taken of */
            sandboxID: string;
            /** @description Ours */
            state: components["schemas"]["SnapshotState"];
            /** @description Ours. Whether it would survive the loss of power */
            durable: boolean;
            /** @description Ours. When false, what starts from it boots from its disk */
            memory: boolean;
            /** @description Ours. Why it failed */
            reason?: string;
            /** Format: date-time */
            createdAt: string;
            /** Format: int32 */
            cpuCount: number;
            /** Format: int32 */
            memoryMB: number;
            /** Format: int32 */
            diskSizeMB: number;
        };
        Fork: {
            /**
             * Format: int32
             * @description 1 without it
             */
            count?: number;
            /** @description 15 without it */
            timeout?: components["schemas"]["RunTimeout"];
        };
        /** @description Exactly one of the two */
        ForkResult: {
            sandbox?: components["schemas"]["Sandbox"];
            error?: components["schemas"]["Error"];
        };
        Rollback: {
            snapshotID: components["schemas"]["TemplateReference"];
            /** @description An older one will do when the newest under this name is not ready */
            allowOlder?: boolean;
        };
        SnapshotDiff: {
            /** @description Sorted by path; content, type, permissions and owner count, times do not */
            files: {
                path: string;
                /** @enum {string} */
                kind: "added" | "changed" | "removed";
            }[];
            /** @description Absent when one of the two has no memory */
            memory?: {
                /** @description MiB, with fractions */
                changedMB: number;
                /** @description MiB */
                totalMB: number;
            };
        };
        LineageNode: {
            /** @description Of a sandbox, or of a build */
            id: string;
            /** @enum {string} */
            kind: "template" | "snapshot" | "sandbox";
            name: string;
            state: string;
            /**
             * Format: date-time
             * @description For a sandbox that has ended, its end
             */
            createdAt: string;
            parentID?: string;
            /** @description On the disk, used by nobody else */
            uniqueMB: number;
        };
    };
    responses: {
        /** @description The sandbox is running */
        Sandbox: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Sandbox"];
            };
        };
        /** @description Sandboxes */
        SandboxList: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ListedSandbox"][];
            };
        };
        /** @description It failed; `error_code` says why */
        Error: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: {
        /** @description What create returned; the older form `id-clientid` is understood. */
        sandboxID: string;
        /** @description A form (`key=value&key2=value2`) whose keys and values are percent-encoded once more. All pairs must match. */
        metadata: string;
        /** @description X-Next-Token of the page before */
        nextToken: string;
        limit: number;
        /** @description Milliseconds since the epoch, where to start */
        cursor: components["schemas"]["EpochMilliseconds"];
        /** @description From the cursor on to newer entries (forward, also the default) or to older ones (backward, newest first). */
        direction: "forward" | "backward";
        /** @description This level and more severe ones */
        level: components["schemas"]["LogLevel"];
        /** @description There is one team */
        teamID: string;
        /** @description Id or name. */
        templateID: components["schemas"]["TemplateReference"];
        buildID: string;
        logLimit: number;
    };
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The server is up */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    doctor: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The report */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DoctorReport"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    stats: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The figures */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stats"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    collectGarbage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CollectGarbage"];
            };
        };
        responses: {
            /** @description What went or would go */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Garbage"][];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    node: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The figures */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Node"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    audit: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was found; nothing is well */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditReport"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    repair: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was found; nothing is well */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditReport"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listOperations: {
        parameters: {
            query?: {
                /** @description Only those of this sandbox */
                sandboxID?: string;
                /** @description Only these states; without it all. */
                state?: components["schemas"]["OperationState"][];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The operations */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"][];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listTeams: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One team */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Team"][];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listRunningSandboxes: {
        parameters: {
            query?: {
                /** @description A form (`key=value&key2=value2`) whose keys and values are percent-encoded once more. All pairs must match. */
                metadata?: components["parameters"]["metadata"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["SandboxList"];
            default: components["responses"]["Error"];
        };
    };
    createSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSandbox"];
            };
        };
        responses: {
            201: components["responses"]["Sandbox"];
            default: components["responses"]["Error"];
        };
    };
    listSandboxes: {
        parameters: {
            query?: {
                /** @description A form (`key=value&key2=value2`) whose keys and values are percent-encoded once more. All pairs must match. */
                metadata?: components["parameters"]["metadata"];
                /** @description Only these states; without it both. */
                state?: components["schemas"]["SandboxState"][];
                /** @description By start of the present run; sandboxes of the same millisecond are ordered by id. */
                order?: "asc" | "desc";
                /** @description Inclusive. */
                startedAfter?: string;
                /** @description Id or name, without a tag. One that does not exist matches nothing. */
                template?: string;
                /** @description X-Next-Token of the page before */
                nextToken?: components["parameters"]["nextToken"];
                limit?: components["parameters"]["limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page */
            200: {
                headers: {
                    /** @description Only when there is another page */
                    "X-Next-Token"?: string;
                    /** @description Running sandboxes that match the filter, on any page */
                    "X-Total-Running"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListedSandbox"][];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createSandboxV2: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSandboxV2"];
            };
        };
        responses: {
            201: components["responses"]["Sandbox"];
            default: components["responses"]["Error"];
        };
    };
    createColdSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewColdSandbox"];
            };
        };
        responses: {
            201: components["responses"]["Sandbox"];
            default: components["responses"]["Error"];
        };
    };
    listSandboxMetrics: {
        parameters: {
            query: {
                sandbox_ids: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Samples by sandbox */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxesWithMetrics"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sandbox */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxDetail"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    killSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    pauseSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PauseSandbox"];
            };
        };
        responses: {
            /** @description It is paused and can be resumed */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    resumeSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ResumeSandbox"];
            };
        };
        responses: {
            201: components["responses"]["Sandbox"];
            default: components["responses"]["Error"];
        };
    };
    connectSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConnectSandbox"];
            };
        };
        responses: {
            200: components["responses"]["Sandbox"];
            201: components["responses"]["Sandbox"];
            default: components["responses"]["Error"];
        };
    };
    connectSandboxV2: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ConnectSandboxV2"];
            };
        };
        responses: {
            200: components["responses"]["Sandbox"];
            201: components["responses"]["Sandbox"];
            default: components["responses"]["Error"];
        };
    };
    setSandboxTimeout: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SandboxTimeout"];
            };
        };
        responses: {
            /** @description The timeout is set */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    refreshSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RefreshSandbox"];
            };
        };
        responses: {
            /** @description The sandbox lives at least this long */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getSandboxMetrics: {
        parameters: {
            query?: {
                /** @description Seconds since the epoch */
                start?: components["schemas"]["EpochSeconds"];
                /** @description Seconds since the epoch */
                end?: components["schemas"]["EpochSeconds"];
            };
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Samples */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxMetric"][];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getSandboxLogs: {
        parameters: {
            query?: {
                /** @description Milliseconds since the epoch */
                start?: components["schemas"]["EpochMilliseconds"];
                limit?: number;
            };
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Entries from `start` on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxLogs"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getSandboxLogsV2: {
        parameters: {
            query?: {
                /** @description Milliseconds since the epoch, where to start */
                cursor?: components["parameters"]["cursor"];
                limit?: number;
                /** @description From the cursor on to newer entries (forward, also the default) or to older ones (backward, newest first). */
                direction?: components["parameters"]["direction"];
                /** @description This level and more severe ones */
                level?: components["parameters"]["level"];
                /** @description Only messages that contain this text */
                search?: string;
            };
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Entries */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxLogsV2"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    requestTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTemplate"];
            };
        };
        responses: {
            /** @description Ids of the template and its build */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestedTemplate"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listAllTemplates: {
        parameters: {
            query?: {
                /** @description There is one team */
                teamID?: components["parameters"]["teamID"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Templates */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Template"][];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listTemplates: {
        parameters: {
            query?: {
                /** @description There is one team */
                teamID?: components["parameters"]["teamID"];
                /** @description X-Next-Token of the page before */
                nextToken?: components["parameters"]["nextToken"];
                limit?: components["parameters"]["limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page */
            200: {
                headers: {
                    /** @description Only when there is another page */
                    "X-Next-Token"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Template"][];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    requestTemplateV2: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTemplate"];
            };
        };
        responses: {
            /** @description Ids of the template and its build */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestedTemplate"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getTemplate: {
        parameters: {
            query?: {
                /** @description X-Next-Token of the page before */
                nextToken?: components["parameters"]["nextToken"];
                limit?: components["parameters"]["limit"];
            };
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The template with one page of its builds */
            200: {
                headers: {
                    /** @description Only when there are more builds */
                    "X-Next-Token"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TemplateWithBuilds"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    resolveAlias: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                alias: components["schemas"]["TemplateReference"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The template */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TemplateAlias"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    startBuild: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
                buildID: components["parameters"]["buildID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StartBuild"];
            };
        };
        responses: {
            /** @description It goes on in the background */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getBuildStatus: {
        parameters: {
            query?: {
                /** @description Entries to skip */
                logsOffset?: number;
                limit?: components["parameters"]["logLimit"];
                /** @description This level and more severe ones */
                level?: components["parameters"]["level"];
            };
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
                buildID: components["parameters"]["buildID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BuildInfo"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getBuildLogs: {
        parameters: {
            query?: {
                /** @description Milliseconds since the epoch, where to start */
                cursor?: components["parameters"]["cursor"];
                limit?: components["parameters"]["logLimit"];
                /** @description From the cursor on to newer entries (forward, also the default) or to older ones (backward, newest first). */
                direction?: components["parameters"]["direction"];
                /** @description This level and more severe ones */
                level?: components["parameters"]["level"];
                /** @description There is one source */
                source?: "temporary" | "persistent";
            };
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
                buildID: components["parameters"]["buildID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Entries */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BuildLogs"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createSnapshot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NewSnapshot"];
            };
        };
        responses: {
            /** @description The snapshot is ready */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listSnapshots: {
        parameters: {
            query?: {
                /** @description Only those of this sandbox */
                sandboxID?: string;
                /** @description Id or name; with a tag only that one */
                name?: components["schemas"]["TemplateReference"];
                /** @description Ours. Only `ready` ones without it */
                state?: components["schemas"]["SnapshotState"][];
                /** @description X-Next-Token of the page before */
                nextToken?: components["parameters"]["nextToken"];
                limit?: components["parameters"]["limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page */
            200: {
                headers: {
                    /** @description Only when there is another page */
                    "X-Next-Token"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"][];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    forkSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Fork"];
            };
        };
        responses: {
            /** @description One result for each child */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForkResult"][];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    rollbackSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Rollback"];
            };
        };
        responses: {
            200: components["responses"]["Sandbox"];
            default: components["responses"]["Error"];
        };
    };
    compareSnapshots: {
        parameters: {
            query: {
                /** @description A snapshot or template */
                from: components["schemas"]["TemplateReference"];
                /** @description Another one */
                to: components["schemas"]["TemplateReference"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The difference */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SnapshotDiff"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getLineage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description A sandbox (also one that has ended) or a snapshot */
                id: components["schemas"]["TemplateReference"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The graph */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LineageNode"][];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    updateSandboxNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What create returned; the older form `id-clientid` is understood. */
                sandboxID: components["parameters"]["sandboxID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    getTemplateFileLink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
                hash: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    publishTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    assignTemplateTags: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    deleteTemplateTags: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    listTemplateTags: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name. */
                templateID: components["parameters"]["templateID"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    listVolumes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    createVolume: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    getVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                volumeID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    deleteVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                volumeID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    listSecrets: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    createSecret: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    getSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                secretID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    updateSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                secretID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
    deleteSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                secretID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            default: components["responses"]["Error"];
        };
    };
}
