// Generated from spec/openapi/ by `npm run gen`; do not edit.
/** Every operation by its id. */
export const OPERATIONS = {
  "health": {
    "method": "GET",
    "path": "/health",
    "origin": "e2b",
    "security": [],
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "204": null
    }
  },
  "doctor": {
    "method": "GET",
    "path": "/doctor",
    "origin": "aenv",
    "security": [
      "ApiKey"
    ],
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/DoctorReport"
      }
    }
  },
  "stats": {
    "method": "GET",
    "path": "/stats",
    "origin": "aenv",
    "security": [
      "ApiKey"
    ],
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/Stats"
      }
    }
  },
  "collectGarbage": {
    "method": "POST",
    "path": "/gc",
    "origin": "aenv",
    "security": [
      "ApiKey"
    ],
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/CollectGarbage"
    },
    "bodyRequired": false,
    "responses": {
      "200": {
        "type": "array",
        "items": {
          "$ref": "aenv#/$defs/Garbage"
        }
      }
    }
  },
  "node": {
    "method": "GET",
    "path": "/node",
    "origin": "aenv",
    "security": [
      "ApiKey"
    ],
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/Node"
      }
    }
  },
  "audit": {
    "method": "GET",
    "path": "/audit",
    "origin": "aenv",
    "security": [
      "ApiKey"
    ],
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/AuditReport"
      }
    }
  },
  "repair": {
    "method": "POST",
    "path": "/audit",
    "origin": "aenv",
    "security": [
      "ApiKey"
    ],
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/AuditReport"
      }
    }
  },
  "listOperations": {
    "method": "GET",
    "path": "/operations",
    "origin": "aenv",
    "security": [
      "ApiKey"
    ],
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "sandboxID": {
          "type": "string",
          "maxLength": 128
        },
        "state": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/OperationState"
          }
        }
      }
    },
    "lists": [
      "state"
    ],
    "bodyRequired": false,
    "responses": {
      "200": {
        "type": "array",
        "items": {
          "$ref": "aenv#/$defs/Operation"
        }
      }
    }
  },
  "listTeams": {
    "method": "GET",
    "path": "/teams",
    "origin": "e2b",
    "security": [
      "ApiKey",
      "Bearer"
    ],
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "type": "array",
        "items": {
          "$ref": "aenv#/$defs/Team"
        }
      }
    }
  },
  "listRunningSandboxes": {
    "method": "GET",
    "path": "/sandboxes",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "metadata": {
          "type": "string",
          "maxLength": 16384
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "type": "array",
        "items": {
          "$ref": "aenv#/$defs/ListedSandbox"
        }
      }
    }
  },
  "createSandbox": {
    "method": "POST",
    "path": "/sandboxes",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/NewSandbox"
    },
    "bodyRequired": true,
    "responses": {
      "201": {
        "$ref": "aenv#/$defs/Sandbox"
      }
    }
  },
  "listSandboxes": {
    "method": "GET",
    "path": "/v2/sandboxes",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "metadata": {
          "type": "string",
          "maxLength": 16384
        },
        "state": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/SandboxState"
          }
        },
        "order": {
          "type": "string",
          "enum": [
            "asc",
            "desc"
          ],
          "default": "desc"
        },
        "startedAfter": {
          "type": "string",
          "format": "date-time"
        },
        "template": {
          "type": "string",
          "pattern": "^[A-Za-z0-9_-]{1,128}$"
        },
        "nextToken": {
          "type": "string",
          "maxLength": 512
        },
        "limit": {
          "type": "integer",
          "minimum": 1,
          "maximum": 100,
          "default": 100
        }
      }
    },
    "lists": [
      "state"
    ],
    "bodyRequired": false,
    "responses": {
      "200": {
        "type": "array",
        "items": {
          "$ref": "aenv#/$defs/ListedSandbox"
        }
      }
    }
  },
  "createSandboxV2": {
    "method": "POST",
    "path": "/v2/sandboxes",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/NewSandboxV2"
    },
    "bodyRequired": true,
    "responses": {
      "201": {
        "$ref": "aenv#/$defs/Sandbox"
      }
    }
  },
  "createColdSandbox": {
    "method": "POST",
    "path": "/sandboxes-cold",
    "origin": "aenv",
    "security": [
      "ApiKey"
    ],
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/NewColdSandbox"
    },
    "bodyRequired": true,
    "responses": {
      "201": {
        "$ref": "aenv#/$defs/Sandbox"
      }
    }
  },
  "listSandboxMetrics": {
    "method": "GET",
    "path": "/sandboxes/metrics",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "query": {
      "type": "object",
      "required": [
        "sandbox_ids"
      ],
      "properties": {
        "sandbox_ids": {
          "type": "array",
          "minItems": 1,
          "maxItems": 100,
          "items": {
            "type": "string",
            "pattern": "^[a-z0-9]{1,40}$"
          }
        }
      }
    },
    "lists": [
      "sandbox_ids"
    ],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/SandboxesWithMetrics"
      }
    }
  },
  "getSandbox": {
    "method": "GET",
    "path": "/sandboxes/{sandboxID}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/SandboxDetail"
      }
    }
  },
  "killSandbox": {
    "method": "DELETE",
    "path": "/sandboxes/{sandboxID}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "204": null
    }
  },
  "pauseSandbox": {
    "method": "POST",
    "path": "/sandboxes/{sandboxID}/pause",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/PauseSandbox"
    },
    "bodyRequired": false,
    "responses": {
      "204": null
    }
  },
  "resumeSandbox": {
    "method": "POST",
    "path": "/sandboxes/{sandboxID}/resume",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/ResumeSandbox"
    },
    "bodyRequired": false,
    "responses": {
      "201": {
        "$ref": "aenv#/$defs/Sandbox"
      }
    }
  },
  "connectSandbox": {
    "method": "POST",
    "path": "/sandboxes/{sandboxID}/connect",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/ConnectSandbox"
    },
    "bodyRequired": true,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/Sandbox"
      },
      "201": {
        "$ref": "aenv#/$defs/Sandbox"
      }
    }
  },
  "connectSandboxV2": {
    "method": "POST",
    "path": "/v2/sandboxes/{sandboxID}/connect",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/ConnectSandboxV2"
    },
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/Sandbox"
      },
      "201": {
        "$ref": "aenv#/$defs/Sandbox"
      }
    }
  },
  "setSandboxTimeout": {
    "method": "POST",
    "path": "/sandboxes/{sandboxID}/timeout",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/SandboxTimeout"
    },
    "bodyRequired": true,
    "responses": {
      "204": null
    }
  },
  "refreshSandbox": {
    "method": "POST",
    "path": "/sandboxes/{sandboxID}/refreshes",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/RefreshSandbox"
    },
    "bodyRequired": false,
    "responses": {
      "204": null
    }
  },
  "getSandboxMetrics": {
    "method": "GET",
    "path": "/sandboxes/{sandboxID}/metrics",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "start": {
          "$ref": "aenv#/$defs/EpochSeconds"
        },
        "end": {
          "$ref": "aenv#/$defs/EpochSeconds"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "type": "array",
        "items": {
          "$ref": "aenv#/$defs/SandboxMetric"
        }
      }
    }
  },
  "getSandboxLogs": {
    "method": "GET",
    "path": "/sandboxes/{sandboxID}/logs",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "start": {
          "$ref": "aenv#/$defs/EpochMilliseconds"
        },
        "limit": {
          "type": "integer",
          "minimum": 0,
          "maximum": 10000,
          "default": 1000
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/SandboxLogs"
      }
    }
  },
  "getSandboxLogsV2": {
    "method": "GET",
    "path": "/v2/sandboxes/{sandboxID}/logs",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "cursor": {
          "$ref": "aenv#/$defs/EpochMilliseconds"
        },
        "limit": {
          "type": "integer",
          "minimum": 0,
          "maximum": 1000,
          "default": 1000
        },
        "direction": {
          "type": "string",
          "enum": [
            "forward",
            "backward"
          ],
          "default": "forward"
        },
        "level": {
          "$ref": "aenv#/$defs/LogLevel"
        },
        "search": {
          "type": "string",
          "maxLength": 256
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/SandboxLogsV2"
      }
    }
  },
  "requestTemplate": {
    "method": "POST",
    "path": "/v3/templates",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/NewTemplate"
    },
    "bodyRequired": true,
    "responses": {
      "202": {
        "$ref": "aenv#/$defs/RequestedTemplate"
      }
    }
  },
  "listAllTemplates": {
    "method": "GET",
    "path": "/templates",
    "origin": "e2b",
    "security": [
      "ApiKey",
      "Bearer"
    ],
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "teamID": {
          "type": "string"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "type": "array",
        "items": {
          "$ref": "aenv#/$defs/Template"
        }
      }
    }
  },
  "listTemplates": {
    "method": "GET",
    "path": "/v2/templates",
    "origin": "e2b",
    "security": [
      "ApiKey",
      "Bearer"
    ],
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "teamID": {
          "type": "string"
        },
        "nextToken": {
          "type": "string",
          "maxLength": 512
        },
        "limit": {
          "type": "integer",
          "minimum": 1,
          "maximum": 100,
          "default": 100
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "type": "array",
        "items": {
          "$ref": "aenv#/$defs/Template"
        }
      }
    }
  },
  "requestTemplateV2": {
    "method": "POST",
    "path": "/v2/templates",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/NewTemplate"
    },
    "bodyRequired": true,
    "responses": {
      "202": {
        "$ref": "aenv#/$defs/RequestedTemplate"
      }
    }
  },
  "getTemplate": {
    "method": "GET",
    "path": "/templates/{templateID}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "templateID"
      ],
      "properties": {
        "templateID": {
          "$ref": "aenv#/$defs/TemplateReference"
        }
      }
    },
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "nextToken": {
          "type": "string",
          "maxLength": 512
        },
        "limit": {
          "type": "integer",
          "minimum": 1,
          "maximum": 100,
          "default": 100
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/TemplateWithBuilds"
      }
    }
  },
  "deleteTemplate": {
    "method": "DELETE",
    "path": "/templates/{templateID}",
    "origin": "e2b",
    "security": [
      "ApiKey",
      "Bearer"
    ],
    "params": {
      "type": "object",
      "required": [
        "templateID"
      ],
      "properties": {
        "templateID": {
          "$ref": "aenv#/$defs/TemplateReference"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "204": null
    }
  },
  "resolveAlias": {
    "method": "GET",
    "path": "/templates/aliases/{alias}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "alias"
      ],
      "properties": {
        "alias": {
          "$ref": "aenv#/$defs/TemplateReference"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/TemplateAlias"
      }
    }
  },
  "startBuild": {
    "method": "POST",
    "path": "/v2/templates/{templateID}/builds/{buildID}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "templateID",
        "buildID"
      ],
      "properties": {
        "templateID": {
          "$ref": "aenv#/$defs/TemplateReference"
        },
        "buildID": {
          "type": "string",
          "format": "uuid"
        }
      }
    },
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/StartBuild"
    },
    "bodyRequired": true,
    "responses": {
      "202": null
    }
  },
  "getBuildStatus": {
    "method": "GET",
    "path": "/templates/{templateID}/builds/{buildID}/status",
    "origin": "e2b",
    "security": [
      "ApiKey",
      "Bearer"
    ],
    "params": {
      "type": "object",
      "required": [
        "templateID",
        "buildID"
      ],
      "properties": {
        "templateID": {
          "$ref": "aenv#/$defs/TemplateReference"
        },
        "buildID": {
          "type": "string",
          "format": "uuid"
        }
      }
    },
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "logsOffset": {
          "type": "integer",
          "minimum": 0,
          "maximum": 2147483647,
          "default": 0
        },
        "limit": {
          "type": "integer",
          "minimum": 0,
          "maximum": 100,
          "default": 100
        },
        "level": {
          "$ref": "aenv#/$defs/LogLevel"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/BuildInfo"
      }
    }
  },
  "getBuildLogs": {
    "method": "GET",
    "path": "/templates/{templateID}/builds/{buildID}/logs",
    "origin": "e2b",
    "security": [
      "ApiKey",
      "Bearer"
    ],
    "params": {
      "type": "object",
      "required": [
        "templateID",
        "buildID"
      ],
      "properties": {
        "templateID": {
          "$ref": "aenv#/$defs/TemplateReference"
        },
        "buildID": {
          "type": "string",
          "format": "uuid"
        }
      }
    },
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "cursor": {
          "$ref": "aenv#/$defs/EpochMilliseconds"
        },
        "limit": {
          "type": "integer",
          "minimum": 0,
          "maximum": 100,
          "default": 100
        },
        "direction": {
          "type": "string",
          "enum": [
            "forward",
            "backward"
          ],
          "default": "forward"
        },
        "level": {
          "$ref": "aenv#/$defs/LogLevel"
        },
        "source": {
          "type": "string",
          "enum": [
            "temporary",
            "persistent"
          ]
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/BuildLogs"
      }
    }
  },
  "createSnapshot": {
    "method": "POST",
    "path": "/sandboxes/{sandboxID}/snapshots",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/NewSnapshot"
    },
    "bodyRequired": false,
    "responses": {
      "201": {
        "$ref": "aenv#/$defs/Snapshot"
      }
    }
  },
  "listSnapshots": {
    "method": "GET",
    "path": "/snapshots",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "query": {
      "type": "object",
      "required": [],
      "properties": {
        "sandboxID": {
          "type": "string",
          "maxLength": 128
        },
        "name": {
          "$ref": "aenv#/$defs/TemplateReference"
        },
        "state": {
          "type": "array",
          "items": {
            "$ref": "aenv#/$defs/SnapshotState"
          }
        },
        "nextToken": {
          "type": "string",
          "maxLength": 512
        },
        "limit": {
          "type": "integer",
          "minimum": 1,
          "maximum": 100,
          "default": 100
        }
      }
    },
    "lists": [
      "state"
    ],
    "bodyRequired": false,
    "responses": {
      "200": {
        "type": "array",
        "items": {
          "$ref": "aenv#/$defs/Snapshot"
        }
      }
    }
  },
  "forkSandbox": {
    "method": "POST",
    "path": "/sandboxes/{sandboxID}/fork",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/Fork"
    },
    "bodyRequired": false,
    "responses": {
      "201": {
        "type": "array",
        "items": {
          "$ref": "aenv#/$defs/ForkResult"
        }
      }
    }
  },
  "rollbackSandbox": {
    "method": "POST",
    "path": "/sandboxes/{sandboxID}/rollback",
    "origin": "aenv",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "body": {
      "$ref": "aenv#/$defs/Rollback"
    },
    "bodyRequired": true,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/Sandbox"
      }
    }
  },
  "compareSnapshots": {
    "method": "GET",
    "path": "/snapshots/diff",
    "origin": "aenv",
    "security": [
      "ApiKey"
    ],
    "query": {
      "type": "object",
      "required": [
        "from",
        "to"
      ],
      "properties": {
        "from": {
          "$ref": "aenv#/$defs/TemplateReference"
        },
        "to": {
          "$ref": "aenv#/$defs/TemplateReference"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "$ref": "aenv#/$defs/SnapshotDiff"
      }
    }
  },
  "getLineage": {
    "method": "GET",
    "path": "/lineage/{id}",
    "origin": "aenv",
    "security": [
      "ApiKey"
    ],
    "params": {
      "type": "object",
      "required": [
        "id"
      ],
      "properties": {
        "id": {
          "$ref": "aenv#/$defs/TemplateReference"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {
      "200": {
        "type": "array",
        "items": {
          "$ref": "aenv#/$defs/LineageNode"
        }
      }
    }
  },
  "updateSandboxNetwork": {
    "method": "PUT",
    "path": "/sandboxes/{sandboxID}/network",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "The network policy of a sandbox is set at its start with `allow_internet_access` and cannot be changed.",
    "params": {
      "type": "object",
      "required": [
        "sandboxID"
      ],
      "properties": {
        "sandboxID": {
          "type": "string",
          "pattern": "^[a-z0-9]{1,40}(-[a-z0-9]{1,40})?$"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "getTemplateFileLink": {
    "method": "GET",
    "path": "/templates/{templateID}/files/{hash}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Build steps are not supported, so there is nothing to upload files for; put them into the image.",
    "params": {
      "type": "object",
      "required": [
        "templateID",
        "hash"
      ],
      "properties": {
        "templateID": {
          "$ref": "aenv#/$defs/TemplateReference"
        },
        "hash": {
          "type": "string"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "publishTemplate": {
    "method": "PATCH",
    "path": "/v2/templates/{templateID}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Templates cannot be published; everybody with the key of this server sees all of them.",
    "params": {
      "type": "object",
      "required": [
        "templateID"
      ],
      "properties": {
        "templateID": {
          "$ref": "aenv#/$defs/TemplateReference"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "assignTemplateTags": {
    "method": "POST",
    "path": "/templates/tags",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Tags are given to a build when the template is registered and cannot be moved.",
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "deleteTemplateTags": {
    "method": "DELETE",
    "path": "/templates/tags",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Tags are given to a build when the template is registered and cannot be removed.",
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "listTemplateTags": {
    "method": "GET",
    "path": "/templates/{templateID}/tags",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Which build a tag stands for is not published.",
    "params": {
      "type": "object",
      "required": [
        "templateID"
      ],
      "properties": {
        "templateID": {
          "$ref": "aenv#/$defs/TemplateReference"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "listVolumes": {
    "method": "GET",
    "path": "/volumes",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Volumes are not supported.",
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "createVolume": {
    "method": "POST",
    "path": "/volumes",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Volumes are not supported.",
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "getVolume": {
    "method": "GET",
    "path": "/volumes/{volumeID}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Volumes are not supported.",
    "params": {
      "type": "object",
      "required": [
        "volumeID"
      ],
      "properties": {
        "volumeID": {
          "type": "string"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "deleteVolume": {
    "method": "DELETE",
    "path": "/volumes/{volumeID}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Volumes are not supported.",
    "params": {
      "type": "object",
      "required": [
        "volumeID"
      ],
      "properties": {
        "volumeID": {
          "type": "string"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "listSecrets": {
    "method": "GET",
    "path": "/secrets",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Secrets are not supported; pass values with `envVars`.",
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "createSecret": {
    "method": "POST",
    "path": "/secrets",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Secrets are not supported; pass values with `envVars`.",
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "getSecret": {
    "method": "GET",
    "path": "/secrets/{secretID}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Secrets are not supported; pass values with `envVars`.",
    "params": {
      "type": "object",
      "required": [
        "secretID"
      ],
      "properties": {
        "secretID": {
          "type": "string"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "updateSecret": {
    "method": "POST",
    "path": "/secrets/{secretID}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Secrets are not supported; pass values with `envVars`.",
    "params": {
      "type": "object",
      "required": [
        "secretID"
      ],
      "properties": {
        "secretID": {
          "type": "string"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  },
  "deleteSecret": {
    "method": "DELETE",
    "path": "/secrets/{secretID}",
    "origin": "e2b",
    "security": [
      "ApiKey"
    ],
    "refused": "Secrets are not supported; pass values with `envVars`.",
    "params": {
      "type": "object",
      "required": [
        "secretID"
      ],
      "properties": {
        "secretID": {
          "type": "string"
        }
      }
    },
    "lists": [],
    "bodyRequired": false,
    "responses": {}
  }
} as const;
