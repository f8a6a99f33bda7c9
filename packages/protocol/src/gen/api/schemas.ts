// Generated from spec/openapi/ by `npm run gen`; do not edit.
/** All schemas of the API as one JSON schema. */
export const API_SCHEMAS = {
  "$id": "aenv",
  "$defs": {
    "Error": {
      "type": "object",
      "required": [
        "code",
        "message",
        "error_code"
      ],
      "properties": {
        "code": {
          "type": "integer",
          "description": "The HTTP status"
        },
        "message": {
          "type": "string",
          "description": "What went wrong"
        },
        "error_code": {
          "type": "string",
          "description": "Stable, machine-readable cause (docs/errors.md)"
        },
        "remedy": {
          "type": "string",
          "description": "What to do about it"
        }
      }
    },
    "DoctorFinding": {
      "type": "object",
      "required": [
        "check",
        "status",
        "detail"
      ],
      "properties": {
        "check": {
          "type": "string",
          "description": "Such as `qemu`, `accelerator`, `nftables`, `disk`"
        },
        "status": {
          "type": "string",
          "enum": [
            "ok",
            "warn",
            "fail"
          ]
        },
        "detail": {
          "type": "string",
          "description": "What was found, with versions and figures"
        },
        "remedy": {
          "type": "string",
          "description": "What to do"
        }
      }
    },
    "DoctorReport": {
      "type": "object",
      "required": [
        "findings"
      ],
      "properties": {
        "findings": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/DoctorFinding"
          }
        }
      }
    },
    "Stats": {
      "type": "object",
      "required": [
        "version",
        "running",
        "paused",
        "slotsReady",
        "pool",
        "operations"
      ],
      "properties": {
        "version": {
          "type": "string",
          "description": "Of the server"
        },
        "running": {
          "type": "integer"
        },
        "paused": {
          "type": "integer"
        },
        "slotsReady": {
          "type": "integer",
          "description": "Network slots that wait for a sandbox"
        },
        "pool": {
          "type": "object",
          "required": [
            "ready",
            "hits",
            "misses"
          ],
          "properties": {
            "ready": {
              "type": "integer",
              "description": "Restored VMs that wait for a sandbox"
            },
            "hits": {
              "type": "integer",
              "description": "Starts that found one, since the server started"
            },
            "misses": {
              "type": "integer",
              "description": "Starts that did not, since the server started"
            }
          }
        },
        "operations": {
          "type": "object",
          "description": "By operation, since the server started",
          "additionalProperties": {
            "type": "object",
            "required": [
              "succeeded",
              "failed",
              "seconds"
            ],
            "properties": {
              "succeeded": {
                "type": "integer"
              },
              "failed": {
                "type": "integer"
              },
              "seconds": {
                "type": "number",
                "description": "Taken by all of them together"
              }
            }
          }
        }
      }
    },
    "CollectGarbage": {
      "type": "object",
      "properties": {
        "dryRun": {
          "type": "boolean",
          "description": "Only tell what would go; false without it"
        }
      }
    },
    "Garbage": {
      "type": "object",
      "required": [
        "kind",
        "name",
        "bytes",
        "why"
      ],
      "properties": {
        "kind": {
          "type": "string",
          "enum": [
            "image_disk"
          ]
        },
        "name": {
          "type": "string"
        },
        "bytes": {
          "type": "integer",
          "description": "On the disk"
        },
        "why": {
          "type": "string"
        }
      }
    },
    "Node": {
      "type": "object",
      "required": [
        "running",
        "maxRunning",
        "waiting",
        "memoryMB",
        "freeDiskMB"
      ],
      "properties": {
        "running": {
          "type": "integer",
          "description": "Sandboxes that run or are about to"
        },
        "maxRunning": {
          "type": "integer"
        },
        "waiting": {
          "type": "integer",
          "description": "Starts that wait for room"
        },
        "memoryMB": {
          "type": "object",
          "required": [
            "total",
            "free",
            "promised",
            "limit"
          ],
          "properties": {
            "total": {
              "type": "integer",
              "description": "Of the machine"
            },
            "free": {
              "type": "integer",
              "description": "Of the machine"
            },
            "promised": {
              "type": "integer",
              "description": "To running sandboxes"
            },
            "limit": {
              "type": "integer",
              "description": "As much as may be promised"
            }
          }
        },
        "freeDiskMB": {
          "type": "integer"
        }
      }
    },
    "AuditFinding": {
      "type": "object",
      "required": [
        "kind",
        "name",
        "detail"
      ],
      "properties": {
        "kind": {
          "type": "string",
          "enum": [
            "vm",
            "slot",
            "sandbox_files",
            "template_files",
            "run_directory",
            "layer",
            "namespace",
            "cgroup",
            "missing_vm",
            "missing_state",
            "missing_layer"
          ]
        },
        "name": {
          "type": "string"
        },
        "detail": {
          "type": "string"
        },
        "removed": {
          "type": "boolean",
          "description": "Whether it has been removed now"
        }
      }
    },
    "AuditReport": {
      "type": "object",
      "required": [
        "findings"
      ],
      "properties": {
        "findings": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/AuditFinding"
          }
        }
      }
    },
    "OperationState": {
      "type": "string",
      "enum": [
        "running",
        "succeeded",
        "failed",
        "interrupted"
      ]
    },
    "Operation": {
      "type": "object",
      "required": [
        "operationID",
        "kind",
        "generation",
        "phase",
        "state",
        "startedAt",
        "deadlineAt"
      ],
      "properties": {
        "operationID": {
          "type": "string"
        },
        "kind": {
          "type": "string",
          "enum": [
            "start",
            "pause",
            "resume",
            "snapshot",
            "fork",
            "rollback",
            "kill",
            "build"
          ]
        },
        "sandboxID": {
          "type": "string"
        },
        "buildID": {
          "type": "string"
        },
        "generation": {
          "type": "integer",
          "description": "Counts the operations of the sandbox or build"
        },
        "phase": {
          "type": "string",
          "description": "The last one that it reached"
        },
        "state": {
          "$ref": "aenv#/$defs/OperationState",
          "description": "`interrupted`: the server ended meanwhile, and its next start finished or undid it"
        },
        "startedAt": {
          "type": "string",
          "format": "date-time"
        },
        "deadlineAt": {
          "type": "string",
          "format": "date-time",
          "description": "It has ended by then"
        },
        "endedAt": {
          "type": "string",
          "format": "date-time"
        },
        "error": {
          "$ref": "aenv#/$defs/Error"
        }
      }
    },
    "Team": {
      "type": "object",
      "required": [
        "teamID",
        "name",
        "apiKey",
        "isDefault"
      ],
      "properties": {
        "teamID": {
          "type": "string"
        },
        "name": {
          "type": "string"
        },
        "apiKey": {
          "type": "string",
          "description": "The key that the request came with"
        },
        "isDefault": {
          "type": "boolean"
        }
      }
    },
    "Metadata": {
      "type": "object",
      "additionalProperties": {
        "type": "string"
      }
    },
    "SandboxState": {
      "type": "string",
      "enum": [
        "running",
        "paused"
      ]
    },
    "ListedSandbox": {
      "type": "object",
      "required": [
        "templateID",
        "sandboxID",
        "clientID",
        "startedAt",
        "endAt",
        "cpuCount",
        "memoryMB",
        "diskSizeMB",
        "metadata",
        "state",
        "envdVersion"
      ],
      "properties": {
        "templateID": {
          "type": "string"
        },
        "sandboxID": {
          "type": "string"
        },
        "alias": {
          "type": "string",
          "description": "First name of the template"
        },
        "clientID": {
          "type": "string"
        },
        "startedAt": {
          "type": "string",
          "format": "date-time",
          "description": "Start of the present run"
        },
        "endAt": {
          "type": "string",
          "format": "date-time",
          "description": "When the timeout strikes; for a paused sandbox when it was paused"
        },
        "cpuCount": {
          "type": "integer"
        },
        "memoryMB": {
          "type": "integer"
        },
        "diskSizeMB": {
          "type": "integer"
        },
        "metadata": {
          "$ref": "aenv#/$defs/Metadata"
        },
        "state": {
          "$ref": "aenv#/$defs/SandboxState"
        },
        "envdVersion": {
          "type": "string"
        }
      }
    },
    "TemplateReference": {
      "type": "string",
      "description": "Template id, name, or `name:tag`; case and surrounding blanks do not matter.",
      "pattern": "^\\s*[A-Za-z0-9_-]{1,128}(:[A-Za-z0-9._-]{1,128})?\\s*$"
    },
    "Timeout": {
      "type": "integer",
      "format": "int32",
      "minimum": 1,
      "description": "Seconds from now. The server's configuration sets the longest."
    },
    "AutoResume": {
      "type": "object",
      "required": [
        "enabled"
      ],
      "properties": {
        "enabled": {
          "type": "boolean",
          "description": "Resume when a request reaches the paused sandbox"
        }
      }
    },
    "Network": {
      "type": "object",
      "description": "Only defaults are accepted; `allow_internet_access` is the one policy there is.",
      "properties": {
        "allowPublicTraffic": {
          "type": "boolean",
          "description": "Refused when false"
        },
        "allowOut": {
          "type": "array",
          "items": {
            "type": "string"
          },
          "description": "Refused when not empty"
        },
        "denyOut": {
          "type": "array",
          "items": {
            "type": "string"
          },
          "description": "Refused when not empty"
        },
        "egressProxy": {
          "type": [
            "object",
            "null"
          ],
          "description": "Refused"
        },
        "maskRequestHost": {
          "type": "string",
          "description": "Refused"
        },
        "rules": {
          "type": "object",
          "description": "Refused when not empty"
        },
        "httpsPorts": {
          "type": "array",
          "items": {
            "type": "integer"
          },
          "description": "Refused when not empty"
        }
      }
    },
    "EnvVars": {
      "type": "object",
      "description": "A name holds no `=`, and neither name nor value a NUL character.",
      "propertyNames": {
        "pattern": "^[^=\\u0000]{1,256}$"
      },
      "additionalProperties": {
        "type": "string",
        "pattern": "^[^\\u0000]*$"
      }
    },
    "VolumeMount": {
      "type": "object",
      "required": [
        "name",
        "path"
      ],
      "properties": {
        "name": {
          "type": "string"
        },
        "path": {
          "type": "string"
        }
      }
    },
    "NewSandbox": {
      "type": "object",
      "required": [
        "templateID"
      ],
      "properties": {
        "templateID": {
          "$ref": "aenv#/$defs/TemplateReference"
        },
        "allowOlder": {
          "type": "boolean",
          "description": "Ours. Of a snapshot, an older one will do when the newest under this name is not ready"
        },
        "timeout": {
          "$ref": "aenv#/$defs/Timeout",
          "description": "15 without it"
        },
        "autoPause": {
          "type": "boolean",
          "description": "Pause at the timeout instead of killing; false without it"
        },
        "autoPauseMemory": {
          "type": "boolean",
          "description": "When false, a pause at the timeout keeps only the disk; true without it"
        },
        "autoResume": {
          "$ref": "aenv#/$defs/AutoResume"
        },
        "secure": {
          "type": "boolean",
          "description": "The guest daemon asks for `envdAccessToken`; false without it"
        },
        "allow_internet_access": {
          "type": "boolean",
          "description": "true without it"
        },
        "network": {
          "$ref": "aenv#/$defs/Network"
        },
        "metadata": {
          "$ref": "aenv#/$defs/Metadata"
        },
        "envVars": {
          "$ref": "aenv#/$defs/EnvVars"
        },
        "mcp": {
          "type": [
            "object",
            "null"
          ],
          "description": "Refused"
        },
        "iam": {
          "type": "object",
          "description": "Refused when not empty"
        },
        "volumeMounts": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/VolumeMount"
          },
          "description": "Refused when not empty"
        }
      }
    },
    "Sandbox": {
      "type": "object",
      "required": [
        "templateID",
        "sandboxID",
        "clientID",
        "envdVersion",
        "domain"
      ],
      "properties": {
        "templateID": {
          "type": "string"
        },
        "sandboxID": {
          "type": "string"
        },
        "alias": {
          "type": "string",
          "description": "First name of the template"
        },
        "clientID": {
          "type": "string",
          "description": "Constant; older SDKs append it to the id"
        },
        "envdVersion": {
          "type": "string"
        },
        "envdAccessToken": {
          "type": "string",
          "description": "Present for secure sandboxes"
        },
        "trafficAccessToken": {
          "type": [
            "string",
            "null"
          ]
        },
        "domain": {
          "type": [
            "string",
            "null"
          ],
          "description": "Its ports are reached at `PORT-ID.domain`"
        }
      }
    },
    "NewSandboxV2": {
      "type": "object",
      "required": [
        "templateID"
      ],
      "properties": {
        "templateID": {
          "$ref": "aenv#/$defs/TemplateReference"
        },
        "allowOlder": {
          "type": "boolean",
          "description": "Ours. Of a snapshot, an older one will do when the newest under this name is not ready"
        },
        "timeout": {
          "$ref": "aenv#/$defs/Timeout",
          "description": "300 without it"
        },
        "autoPause": {
          "type": "boolean",
          "description": "Pause at the timeout instead of killing; false without it"
        },
        "autoPauseMemory": {
          "type": "boolean",
          "description": "When false, a pause at the timeout keeps only the disk; true without it"
        },
        "autoResume": {
          "$ref": "aenv#/$defs/AutoResume"
        },
        "allow_internet_access": {
          "type": "boolean",
          "description": "true without it"
        },
        "network": {
          "$ref": "aenv#/$defs/Network"
        },
        "metadata": {
          "$ref": "aenv#/$defs/Metadata"
        },
        "envVars": {
          "$ref": "aenv#/$defs/EnvVars"
        },
        "mcp": {
          "type": [
            "object",
            "null"
          ],
          "description": "Refused"
        },
        "iam": {
          "type": "object",
          "description": "Refused when not empty"
        },
        "volumeMounts": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/VolumeMount"
          },
          "description": "Refused when not empty"
        }
      }
    },
    "ImageReference": {
      "type": "string",
      "description": "Such as `ubuntu:22.04`, `ghcr.io/owner/name@sha256:…`.",
      "minLength": 1,
      "maxLength": 1024
    },
    "ImageRegistry": {
      "type": "object",
      "required": [
        "type"
      ],
      "description": "Credentials for the registry. `aws` and `gcp` are refused.",
      "properties": {
        "type": {
          "type": "string",
          "enum": [
            "registry",
            "aws",
            "gcp"
          ]
        },
        "username": {
          "type": "string"
        },
        "password": {
          "type": "string"
        }
      }
    },
    "CPUCount": {
      "type": "integer",
      "minimum": 1,
      "maximum": 256,
      "description": "Cores"
    },
    "MemoryMB": {
      "type": "integer",
      "minimum": 128,
      "maximum": 16777216,
      "description": "MiB"
    },
    "DiskSizeMB": {
      "type": "integer",
      "minimum": 64,
      "maximum": 67108864,
      "description": "Size of the root disk, MiB"
    },
    "NewColdSandbox": {
      "type": "object",
      "required": [
        "image"
      ],
      "properties": {
        "image": {
          "$ref": "aenv#/$defs/ImageReference"
        },
        "imageRegistry": {
          "$ref": "aenv#/$defs/ImageRegistry"
        },
        "cpuCount": {
          "$ref": "aenv#/$defs/CPUCount"
        },
        "memoryMB": {
          "$ref": "aenv#/$defs/MemoryMB"
        },
        "diskSizeMB": {
          "$ref": "aenv#/$defs/DiskSizeMB"
        },
        "timeout": {
          "$ref": "aenv#/$defs/Timeout",
          "description": "300 without it"
        },
        "autoPause": {
          "type": "boolean",
          "description": "Pause at the timeout instead of killing; false without it"
        },
        "autoPauseMemory": {
          "type": "boolean",
          "description": "When false, a pause at the timeout keeps only the disk; true without it"
        },
        "autoResume": {
          "$ref": "aenv#/$defs/AutoResume"
        },
        "secure": {
          "type": "boolean",
          "description": "The guest daemon asks for `envdAccessToken`; true without it"
        },
        "allow_internet_access": {
          "type": "boolean",
          "description": "true without it"
        },
        "network": {
          "$ref": "aenv#/$defs/Network"
        },
        "metadata": {
          "$ref": "aenv#/$defs/Metadata"
        },
        "envVars": {
          "$ref": "aenv#/$defs/EnvVars"
        },
        "volumeMounts": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/VolumeMount"
          },
          "description": "Refused when not empty"
        }
      }
    },
    "SandboxMetric": {
      "type": "object",
      "required": [
        "timestamp",
        "timestampUnix",
        "cpuCount",
        "cpuUsedPct",
        "memUsed",
        "memTotal",
        "memCache",
        "diskUsed",
        "diskTotal"
      ],
      "properties": {
        "timestamp": {
          "type": "string",
          "format": "date-time"
        },
        "timestampUnix": {
          "type": "integer",
          "description": "Seconds"
        },
        "cpuCount": {
          "type": "integer"
        },
        "cpuUsedPct": {
          "type": "number",
          "description": "Of all cores, 0 to 100"
        },
        "memUsed": {
          "type": "integer",
          "description": "Bytes"
        },
        "memTotal": {
          "type": "integer",
          "description": "Bytes"
        },
        "memCache": {
          "type": "integer",
          "description": "Bytes"
        },
        "diskUsed": {
          "type": "integer",
          "description": "Bytes"
        },
        "diskTotal": {
          "type": "integer",
          "description": "Bytes"
        }
      }
    },
    "SandboxesWithMetrics": {
      "type": "object",
      "required": [
        "sandboxes"
      ],
      "properties": {
        "sandboxes": {
          "type": "object",
          "additionalProperties": {
            "$ref": "aenv#/$defs/SandboxMetric"
          }
        }
      }
    },
    "SandboxDetail": {
      "type": "object",
      "required": [
        "templateID",
        "sandboxID",
        "clientID",
        "startedAt",
        "endAt",
        "cpuCount",
        "memoryMB",
        "diskSizeMB",
        "metadata",
        "state",
        "envdVersion",
        "domain",
        "allowInternetAccess",
        "lifecycle"
      ],
      "properties": {
        "templateID": {
          "type": "string"
        },
        "sandboxID": {
          "type": "string"
        },
        "alias": {
          "type": "string",
          "description": "First name of the template"
        },
        "clientID": {
          "type": "string"
        },
        "startedAt": {
          "type": "string",
          "format": "date-time",
          "description": "Start of the present run"
        },
        "endAt": {
          "type": "string",
          "format": "date-time",
          "description": "When the timeout strikes; for a paused sandbox when it was paused"
        },
        "cpuCount": {
          "type": "integer"
        },
        "memoryMB": {
          "type": "integer"
        },
        "diskSizeMB": {
          "type": "integer"
        },
        "metadata": {
          "$ref": "aenv#/$defs/Metadata"
        },
        "state": {
          "$ref": "aenv#/$defs/SandboxState"
        },
        "envdVersion": {
          "type": "string"
        },
        "envdAccessToken": {
          "type": "string",
          "description": "Present for secure sandboxes"
        },
        "allowInternetAccess": {
          "type": "boolean"
        },
        "domain": {
          "type": [
            "string",
            "null"
          ]
        },
        "lifecycle": {
          "type": "object",
          "required": [
            "autoResume",
            "onTimeout"
          ],
          "properties": {
            "autoResume": {
              "type": "boolean"
            },
            "onTimeout": {
              "type": "string",
              "enum": [
                "kill",
                "pause"
              ]
            }
          }
        }
      }
    },
    "PauseSandbox": {
      "type": "object",
      "properties": {
        "memory": {
          "type": "boolean",
          "description": "When false, only the disk is kept, and the sandbox boots when it is resumed; true without it"
        }
      }
    },
    "RunTimeout": {
      "type": "integer",
      "format": "int32",
      "minimum": 0,
      "description": "Seconds from now. The server's configuration sets the longest."
    },
    "ResumeSandbox": {
      "type": "object",
      "properties": {
        "timeout": {
          "$ref": "aenv#/$defs/RunTimeout",
          "description": "15 without it"
        },
        "autoPause": {
          "type": "boolean",
          "description": "The sandbox keeps what it was created with; true is refused for one that does not pause"
        },
        "memory": {
          "type": "boolean",
          "description": "When false, a paused sandbox boots from its disk, even when its memory was kept; true without it"
        }
      }
    },
    "ConnectSandbox": {
      "type": "object",
      "required": [
        "timeout"
      ],
      "properties": {
        "timeout": {
          "$ref": "aenv#/$defs/RunTimeout"
        },
        "memory": {
          "type": "boolean",
          "description": "When false, a paused sandbox boots from its disk, even when its memory was kept; true without it"
        }
      }
    },
    "ConnectSandboxV2": {
      "type": "object",
      "properties": {
        "timeout": {
          "$ref": "aenv#/$defs/RunTimeout",
          "description": "300 without it"
        },
        "memory": {
          "type": "boolean",
          "description": "When false, a paused sandbox boots from its disk, even when its memory was kept; true without it"
        }
      }
    },
    "SandboxTimeout": {
      "type": "object",
      "required": [
        "timeout"
      ],
      "properties": {
        "timeout": {
          "$ref": "aenv#/$defs/RunTimeout"
        }
      }
    },
    "RefreshSandbox": {
      "type": "object",
      "properties": {
        "duration": {
          "type": "integer",
          "minimum": 0,
          "maximum": 3600,
          "description": "Seconds from now, at least 15; 15 without it"
        }
      }
    },
    "EpochSeconds": {
      "type": "integer",
      "minimum": 0,
      "maximum": 8640000000000,
      "description": "Seconds since 1970-01-01 UTC"
    },
    "EpochMilliseconds": {
      "type": "integer",
      "minimum": 0,
      "maximum": 8640000000000000,
      "description": "Milliseconds since 1970-01-01 UTC"
    },
    "SandboxLog": {
      "type": "object",
      "required": [
        "timestamp",
        "line"
      ],
      "properties": {
        "timestamp": {
          "type": "string",
          "format": "date-time"
        },
        "line": {
          "type": "string",
          "description": "JSON with `level`, `logger`, `message` and the entry's own fields"
        }
      }
    },
    "LogLevel": {
      "type": "string",
      "enum": [
        "debug",
        "info",
        "warn",
        "error"
      ]
    },
    "SandboxLogEntry": {
      "type": "object",
      "required": [
        "timestamp",
        "message",
        "level",
        "fields"
      ],
      "properties": {
        "timestamp": {
          "type": "string",
          "format": "date-time"
        },
        "message": {
          "type": "string"
        },
        "level": {
          "$ref": "aenv#/$defs/LogLevel"
        },
        "fields": {
          "type": "object",
          "additionalProperties": {
            "type": "string"
          }
        }
      }
    },
    "SandboxLogs": {
      "type": "object",
      "required": [
        "logs",
        "logEntries"
      ],
      "properties": {
        "logs": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/SandboxLog"
          }
        },
        "logEntries": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/SandboxLogEntry"
          }
        }
      }
    },
    "SandboxLogsV2": {
      "type": "object",
      "required": [
        "logs"
      ],
      "properties": {
        "logs": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/SandboxLogEntry"
          }
        }
      }
    },
    "NewTemplate": {
      "type": "object",
      "properties": {
        "name": {
          "$ref": "aenv#/$defs/TemplateReference",
          "description": "A name that exists gets a new build of the same template."
        },
        "alias": {
          "$ref": "aenv#/$defs/TemplateReference",
          "description": "Older word for `name`"
        },
        "tags": {
          "type": "array",
          "maxItems": 32,
          "items": {
            "type": "string",
            "pattern": "^[A-Za-z0-9._-]{1,128}$"
          }
        },
        "cpuCount": {
          "$ref": "aenv#/$defs/CPUCount"
        },
        "memoryMB": {
          "$ref": "aenv#/$defs/MemoryMB"
        },
        "minFreeDiskMb": {
          "type": "integer",
          "minimum": 0,
          "description": "Refused when above 0; `diskSizeMB` of the build sets the size"
        }
      }
    },
    "RequestedTemplate": {
      "type": "object",
      "required": [
        "templateID",
        "buildID",
        "public",
        "names",
        "tags",
        "aliases"
      ],
      "properties": {
        "templateID": {
          "type": "string"
        },
        "buildID": {
          "type": "string",
          "format": "uuid"
        },
        "public": {
          "type": "boolean"
        },
        "names": {
          "type": "array",
          "items": {
            "type": "string"
          }
        },
        "tags": {
          "type": "array",
          "items": {
            "type": "string"
          }
        },
        "aliases": {
          "type": "array",
          "items": {
            "type": "string"
          }
        }
      }
    },
    "BuildStatus": {
      "type": "string",
      "enum": [
        "building",
        "waiting",
        "ready",
        "error"
      ]
    },
    "Template": {
      "type": "object",
      "required": [
        "templateID",
        "buildID",
        "cpuCount",
        "memoryMB",
        "diskSizeMB",
        "public",
        "aliases",
        "names",
        "createdAt",
        "updatedAt",
        "createdBy",
        "lastSpawnedAt",
        "spawnCount",
        "buildCount",
        "envdVersion",
        "buildStatus"
      ],
      "properties": {
        "templateID": {
          "type": "string"
        },
        "buildID": {
          "type": "string",
          "format": "uuid"
        },
        "cpuCount": {
          "type": "integer"
        },
        "memoryMB": {
          "type": "integer"
        },
        "diskSizeMB": {
          "type": "integer",
          "description": "0 until the disk exists"
        },
        "public": {
          "type": "boolean"
        },
        "aliases": {
          "type": "array",
          "items": {
            "type": "string"
          }
        },
        "names": {
          "type": "array",
          "items": {
            "type": "string"
          }
        },
        "createdAt": {
          "type": "string",
          "format": "date-time"
        },
        "updatedAt": {
          "type": "string",
          "format": "date-time"
        },
        "createdBy": {
          "type": "null",
          "description": "There are no users"
        },
        "lastSpawnedAt": {
          "type": [
            "string",
            "null"
          ],
          "format": "date-time"
        },
        "spawnCount": {
          "type": "integer"
        },
        "buildCount": {
          "type": "integer"
        },
        "envdVersion": {
          "type": "string",
          "description": "Empty until it is built"
        },
        "buildStatus": {
          "$ref": "aenv#/$defs/BuildStatus"
        }
      }
    },
    "TemplateBuild": {
      "type": "object",
      "required": [
        "buildID",
        "status",
        "createdAt",
        "updatedAt",
        "cpuCount",
        "memoryMB"
      ],
      "properties": {
        "buildID": {
          "type": "string",
          "format": "uuid"
        },
        "status": {
          "$ref": "aenv#/$defs/BuildStatus"
        },
        "createdAt": {
          "type": "string",
          "format": "date-time"
        },
        "updatedAt": {
          "type": "string",
          "format": "date-time"
        },
        "finishedAt": {
          "type": "string",
          "format": "date-time"
        },
        "cpuCount": {
          "type": "integer"
        },
        "memoryMB": {
          "type": "integer"
        },
        "diskSizeMB": {
          "type": "integer"
        },
        "envdVersion": {
          "type": "string"
        }
      }
    },
    "TemplateWithBuilds": {
      "type": "object",
      "required": [
        "templateID",
        "public",
        "aliases",
        "names",
        "createdAt",
        "updatedAt",
        "lastSpawnedAt",
        "spawnCount",
        "builds"
      ],
      "properties": {
        "templateID": {
          "type": "string"
        },
        "public": {
          "type": "boolean"
        },
        "aliases": {
          "type": "array",
          "items": {
            "type": "string"
          }
        },
        "names": {
          "type": "array",
          "items": {
            "type": "string"
          }
        },
        "createdAt": {
          "type": "string",
          "format": "date-time"
        },
        "updatedAt": {
          "type": "string",
          "format": "date-time"
        },
        "lastSpawnedAt": {
          "type": [
            "string",
            "null"
          ],
          "format": "date-time"
        },
        "spawnCount": {
          "type": "integer"
        },
        "builds": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/TemplateBuild"
          }
        }
      }
    },
    "TemplateAlias": {
      "type": "object",
      "required": [
        "templateID",
        "public"
      ],
      "properties": {
        "templateID": {
          "type": "string"
        },
        "public": {
          "type": "boolean"
        }
      }
    },
    "TemplateStep": {
      "type": "object",
      "required": [
        "type"
      ],
      "properties": {
        "type": {
          "type": "string"
        },
        "args": {
          "type": "array",
          "items": {
            "type": "string"
          }
        },
        "filesHash": {
          "type": "string"
        },
        "force": {
          "type": "boolean"
        }
      }
    },
    "StartBuild": {
      "type": "object",
      "description": "Exactly one of `fromImage` and `fromTemplate`.",
      "properties": {
        "fromImage": {
          "$ref": "aenv#/$defs/ImageReference"
        },
        "fromTemplate": {
          "$ref": "aenv#/$defs/TemplateReference"
        },
        "fromImageRegistry": {
          "$ref": "aenv#/$defs/ImageRegistry"
        },
        "force": {
          "type": "boolean",
          "description": "Nothing is skipped here in any case"
        },
        "steps": {
          "type": "array",
          "maxItems": 1000,
          "items": {
            "$ref": "aenv#/$defs/TemplateStep"
          },
          "description": "Refused when not empty"
        },
        "startCmd": {
          "type": "string",
          "maxLength": 65536,
          "description": "Runs in the guest until the capture and goes on in every sandbox"
        },
        "readyCmd": {
          "type": "string",
          "maxLength": 65536,
          "description": "Polled until it exits with 0 before the capture"
        },
        "diskSizeMB": {
          "$ref": "aenv#/$defs/DiskSizeMB",
          "description": "Not E2B's"
        }
      }
    },
    "BuildLogEntry": {
      "type": "object",
      "required": [
        "timestamp",
        "message",
        "level"
      ],
      "properties": {
        "timestamp": {
          "type": "string",
          "format": "date-time"
        },
        "message": {
          "type": "string"
        },
        "level": {
          "$ref": "aenv#/$defs/LogLevel"
        },
        "step": {
          "type": "string"
        }
      }
    },
    "BuildInfo": {
      "type": "object",
      "required": [
        "logs",
        "logEntries",
        "templateID",
        "buildID",
        "status"
      ],
      "properties": {
        "logs": {
          "type": "array",
          "items": {
            "type": "string"
          }
        },
        "logEntries": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/BuildLogEntry"
          }
        },
        "templateID": {
          "type": "string"
        },
        "buildID": {
          "type": "string",
          "format": "uuid"
        },
        "status": {
          "$ref": "aenv#/$defs/BuildStatus"
        },
        "reason": {
          "type": "object",
          "required": [
            "message"
          ],
          "properties": {
            "message": {
              "type": "string"
            },
            "step": {
              "type": "string",
              "description": "`base`, the number of a step, or `finalize`"
            },
            "logEntries": {
              "type": "array",
              "items": {
                "$ref": "aenv#/$defs/BuildLogEntry"
              }
            }
          }
        }
      }
    },
    "BuildLogs": {
      "type": "object",
      "required": [
        "logs"
      ],
      "properties": {
        "logs": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/BuildLogEntry"
          }
        }
      }
    },
    "NewSnapshot": {
      "type": "object",
      "properties": {
        "name": {
          "$ref": "aenv#/$defs/TemplateReference",
          "description": "A name that exists gets a newer snapshot; without one the snapshot has only its id."
        },
        "memory": {
          "type": "boolean",
          "description": "Ours. When false, only the disk is copied, and what starts from the snapshot boots; true without it"
        }
      }
    },
    "SnapshotState": {
      "type": "string",
      "enum": [
        "creating",
        "ready",
        "failed"
      ]
    },
    "Snapshot": {
      "type": "object",
      "required": [
        "snapshotID",
        "names",
        "sandboxID",
        "state",
        "durable",
        "memory",
        "createdAt",
        "cpuCount",
        "memoryMB",
        "diskSizeMB"
      ],
      "properties": {
        "snapshotID": {
          "type": "string",
          "description": "What a start names: `ID:TAG`, or `NAME:TAG` when it has a name"
        },
        "names": {
          "type": "array",
          "items": {
            "type": "string"
          }
        },
        "sandboxID": {
          "type": "string",
          "description": "Ours. The sandbox that it was taken of"
        },
        "state": {
          "$ref": "aenv#/$defs/SnapshotState",
          "description": "Ours"
        },
        "durable": {
          "type": "boolean",
          "description": "Ours. Whether it would survive the loss of power"
        },
        "memory": {
          "type": "boolean",
          "description": "Ours. When false, what starts from it boots from its disk"
        },
        "reason": {
          "type": "string",
          "description": "Ours. Why it failed"
        },
        "createdAt": {
          "type": "string",
          "format": "date-time"
        },
        "cpuCount": {
          "type": "integer",
          "format": "int32"
        },
        "memoryMB": {
          "type": "integer",
          "format": "int32"
        },
        "diskSizeMB": {
          "type": "integer",
          "format": "int32"
        }
      }
    },
    "Fork": {
      "type": "object",
      "properties": {
        "count": {
          "type": "integer",
          "format": "int32",
          "minimum": 1,
          "maximum": 100,
          "description": "1 without it"
        },
        "timeout": {
          "$ref": "aenv#/$defs/RunTimeout",
          "description": "15 without it"
        }
      }
    },
    "ForkResult": {
      "type": "object",
      "description": "Exactly one of the two",
      "properties": {
        "sandbox": {
          "$ref": "aenv#/$defs/Sandbox"
        },
        "error": {
          "$ref": "aenv#/$defs/Error"
        }
      }
    },
    "Rollback": {
      "type": "object",
      "required": [
        "snapshotID"
      ],
      "properties": {
        "snapshotID": {
          "$ref": "aenv#/$defs/TemplateReference"
        },
        "allowOlder": {
          "type": "boolean",
          "description": "An older one will do when the newest under this name is not ready"
        }
      }
    },
    "SnapshotDiff": {
      "type": "object",
      "required": [
        "files"
      ],
      "properties": {
        "files": {
          "type": "array",
          "description": "Sorted by path; content, type, permissions and owner count, times do not",
          "items": {
            "type": "object",
            "required": [
              "path",
              "kind"
            ],
            "properties": {
              "path": {
                "type": "string"
              },
              "kind": {
                "type": "string",
                "enum": [
                  "added",
                  "changed",
                  "removed"
                ]
              }
            }
          }
        },
        "memory": {
          "type": "object",
          "description": "Absent when one of the two has no memory",
          "required": [
            "changedMB",
            "totalMB"
          ],
          "properties": {
            "changedMB": {
              "type": "number",
              "description": "MiB, with fractions"
            },
            "totalMB": {
              "type": "number",
              "description": "MiB"
            }
          }
        }
      }
    },
    "LineageNode": {
      "type": "object",
      "required": [
        "id",
        "kind",
        "name",
        "state",
        "createdAt",
        "uniqueMB"
      ],
      "properties": {
        "id": {
          "type": "string",
          "description": "Of a sandbox, or of a build"
        },
        "kind": {
          "type": "string",
          "enum": [
            "template",
            "snapshot",
            "sandbox"
          ]
        },
        "name": {
          "type": "string"
        },
        "state": {
          "type": "string"
        },
        "createdAt": {
          "type": "string",
          "format": "date-time",
          "description": "For a sandbox that has ended, its end"
        },
        "parentID": {
          "type": "string"
        },
        "uniqueMB": {
          "type": "integer",
          "description": "On the disk, used by nobody else"
        }
      }
    }
  }
} as const;
