/** The lab's MCP server, loaded on first use: most brokers never need it. */
import type { LabMcp } from '../lab/mcp.ts';
import { readBuild } from './build.ts';

export type Lab = {
  /** Loads the server on the first call; later calls return the same one. */
  open(): Promise<LabMcp>;
  /** Ends the server's streams, if it was ever opened. */
  close(): Promise<void>;
};

/** `clock`: milliseconds since the Unix epoch. */
export function makeLab(clock: () => number): Lab {
  let opened: Promise<LabMcp> | undefined;
  const load = async () => (await import('../lab/mcp.ts')).makeLabMcp({ version: readBuild().version, clock });
  return {
    open: () => (opened ??= load()),
    close: async () => await (await opened)?.close(),
  };
}
