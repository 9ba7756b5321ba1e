/** The lab's MCP server, loaded when somebody tries it: most brokers run for years without. */
import type { LabMcp } from '../lab/mcp.ts';
import { readBuild } from './build.ts';

export type Lab = {
  /** One and the same each time. */
  open(): Promise<LabMcp>;
  /** Ends its streams, if it was ever opened. */
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
