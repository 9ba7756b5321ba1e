import { type DestinationStream, type Logger, pino } from 'pino';
import { SharedUse, withReserve } from '../runtime/shared-limit.ts';
import { standardError } from './standard-error.ts';

export type Log = Logger;

/** The level `info`, as pino numbers it. */
const INFO = 30;
/** The messages of the count lines, which are themselves never left out. */
const LEFT_OUT = 'repeated lines with this text were suppressed in the last 10 s';
const DROPPED = 'log lines were dropped because standard error did not accept them';

/**
 * Creates the logger: JSON lines on stderr, so that stdout stays for the output that a person or a script requested. Credentials never
 * appear: they are of a type that prints as `[secret]`. Errors are logged without their causes' request objects. Of floods of lines
 * only the first are written, and a count; lines below `info` are only written on request, and then without that limit.
 */
export function makeLog(level: string, to?: DestinationStream): Log {
  const floods = watchFloods((number, text, leftOut) => {
    const name = pino.levels.labels[number] ?? 'warn';
    log[name as 'warn']({ text, leftOut }, LEFT_OUT);
  });
  const log = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      hooks: {
        logMethod(args, method, number) {
          const [first, second] = args as unknown[];
          const text = typeof first === 'string' ? first : String(second ?? '');
          const isCount = text === LEFT_OUT || text === DROPPED;
          if (number < INFO || isCount || floods.passes(number, text, organisationIn(first))) method.apply(this, args);
        },
      },
      formatters: { level: (label) => ({ level: label }) },
      serializers: {
        err: (error: unknown) =>
          error instanceof Error
            ? { name: error.name, message: error.message, code: (error as { code?: unknown }).code, stack: error.stack }
            : { message: String(error) },
      },
    },
    to ?? standardError((dropped) => log.error({ dropped }, DROPPED)),
  );
  return log;
}

/** The organisation that a line names; '' if it names none. */
const organisationIn = (fields: unknown): string =>
  typeof fields === 'object' && fields !== null && 'organisation' in fields ? String(fields.organisation) : '';

/** Most lines with the same text that are written in a window, with a reserve for organisations with few of them. */
const MAX = withReserve(50);
const WINDOW_MS = 10_000;
/** Most texts that are counted separately; lines with further texts are counted together. */
const MAX_TEXTS = 1_000;

type Floods = {
  /** Whether to write this line. `text`: its message, without variable parts; `level`: as pino numbers it; `organisation`: that it names. */
  passes(level: number, text: string, organisation: string): boolean;
};

/**
 * Limits floods of log lines: the first lines with a text are written, and then only the number of further ones.
 * `tell` is called with the text, its level, and how many lines with it were left out in the last window.
 */
function watchFloods(tell: (level: number, text: string, leftOut: number) => void): Floods {
  const seen = new Map<string, { written: SharedUse; leftOut: number }>();

  const open = (key: string, level: number, text: string) => {
    const kind = { written: new SharedUse(MAX), leftOut: 0 };
    seen.set(key, kind);
    setTimeout(() => {
      seen.delete(key);
      if (kind.leftOut > 0) tell(level, text, kind.leftOut);
    }, WINDOW_MS).unref();
    return kind;
  };

  return {
    passes: (level, text, organisation) => {
      const own = `${level} ${text}`;
      const key = seen.has(own) || seen.size < MAX_TEXTS ? own : `${level}`;
      const kind = seen.get(key) ?? open(key, level, key === own ? text : 'many different texts');
      const share = kind.written.of(organisation);
      const passes = kind.written.hasRoom(share, 1);
      if (passes) kind.written.count(share, 1);
      else kind.leftOut++;
      return passes;
    },
  };
}
