/** The server's log: one JSON object a line, secrets left out. */
import type { Logger } from '@aenv/std';
import { type DestinationStream, pino, stdSerializers } from 'pino';

/** Fields that hold secrets wherever they are logged, and the bodies and headers that carry them. */
const SECRET_FIELDS = [
  'apiKey',
  'accessToken',
  'envdAccessToken',
  'trafficAccessToken',
  'initKey',
  'password',
  'credentials',
  'envVars',
  'authorization',
  'cookie',
  '["x-api-key"]',
  '["x-access-token"]',
  '["x-agentenv-access-token"]',
];

const CONTAINERS = ['', '*.', 'req.headers.', 'request.headers.'];

function redactedPaths(): string[] {
  return CONTAINERS.flatMap((container) =>
    SECRET_FIELDS.map((field) => (field.startsWith('[') ? container.replace(/\.$/, '') + field : container + field)),
  );
}

export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: undefined,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: redactedPaths(), censor: '[secret]' },
    serializers: { error: stdSerializers.errWithCause, err: stdSerializers.errWithCause },
  };
  return destination ? pino(options, destination) : pino(options, pino.destination({ dest: 1, sync: true }));
}
