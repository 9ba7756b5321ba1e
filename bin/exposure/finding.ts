/** Something that a command could read without the broker. Values of credentials are in none of it. */
export type Finding = {
  kind: 'variable' | 'file' | 'socket' | 'helper' | 'setting' | 'address';
  /** Name of a variable, path, or address. */
  where: string;
  /** What it is. */
  what: string;
  /** How to put it behind the broker, or out of reach. */
  advice: string;
};

/** Where is looked: an environment, the home folder in it, and the working folder. */
export type Place = { env: Readonly<Record<string, string | undefined>>; home: string; cwd: string };
