import { type Logger, pino } from 'pino';

export type Log = Logger;

/**
 * The one logger: JSON lines on stderr, so that stdout stays for what a person or a script asked for. Credentials never
 * come here: they are of a type that prints as `[secret]`. Errors are logged without their causes' request objects.
 */
export function makeLog(level: string): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: {
        err: (error: unknown) =>
          error instanceof Error
            ? { name: error.name, message: error.message, code: (error as { code?: unknown }).code, stack: error.stack }
            : { message: String(error) },
      },
    },
    pino.destination({ fd: 2, sync: true }),
  );
}
