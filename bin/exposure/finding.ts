/** A finding: something that a command could read without the broker. It never contains the value of a credential. */
export type Finding = {
  kind: 'variable' | 'file' | 'socket' | 'helper' | 'setting' | 'address';
  /** Name of a variable, path, or address. */
  where: string;
  /** Description of the credential. */
  what: string;
  /** How to move it behind the broker, or out of reach. */
  advice: string;
};

/** Where to search: an environment, its home folder, and the working folder. */
export type Place = { env: Readonly<Record<string, string | undefined>>; home: string; cwd: string };
