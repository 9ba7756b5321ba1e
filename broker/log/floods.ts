/** Limits floods of log lines: writes the first lines with a text, and then only the number of further ones. */

/** Most lines with the same text that are written in a window. */
const MOST = 50;
const WINDOW_MS = 10_000;
/** Most texts that are counted separately; lines with further texts are counted together. */
const MOST_TEXTS = 1_000;

export type Floods = {
  /** Whether to write this line. `text`: its message, without variable parts; `level`: as pino numbers it. */
  passes(level: number, text: string): boolean;
};

/** `tell` is called with the text, its level, and how many lines with it were left out in the last window. */
export function watchFloods(tell: (level: number, text: string, leftOut: number) => void): Floods {
  const seen = new Map<string, { level: number; text: string; lines: number }>();

  const open = (key: string, level: number, text: string): { lines: number } => {
    const kind = { level, text, lines: 0 };
    seen.set(key, kind);
    setTimeout(() => {
      seen.delete(key);
      if (kind.lines > MOST) tell(level, text, kind.lines - MOST);
    }, WINDOW_MS).unref();
    return kind;
  };

  return {
    passes: (level, text) => {
      const own = `${level} ${text}`;
      const key = seen.has(own) || seen.size < MOST_TEXTS ? own : `${level}`;
      const kind = seen.get(key) ?? open(key, level, key === own ? text : 'many different texts');
      kind.lines++;
      return kind.lines <= MOST;
    },
  };
}
