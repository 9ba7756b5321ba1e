/** Reads a governance file on the command line: parsed, with the secrets that it references resolved locally. */
import { dirname, resolve } from 'node:path';
import type { Governance } from '../broker/config-file/governance.ts';
import type { Problem } from '../broker/config-file/problems.ts';
import type { Resolved } from '../broker/config-file/secrets.ts';
import { CommandFailed } from './failure.ts';
import { readText } from './read-text.ts';

export type GovernanceFile = { text: string; name: string; governance: Governance; values: Resolved };

/** Reads and parses the file; `-` is standard input, whose references are relative to the current folder. `secrets: false`: resolves its public keys only. Throws CommandFailed with every problem in the file, one on each line. */
export async function readGovernanceFile(file: string, options: { secrets?: boolean } = {}): Promise<GovernanceFile> {
  const { parseGovernance } = await import('../broker/config-file/parse.ts');
  const { resolveReferences } = await import('../broker/config-file/secrets.ts');
  const name = file === '-' ? 'standard input' : file;
  const text = file === '-' ? readText(0, 'Standard input') : readText(file, `The governance file ${file}`);
  const parsed = parseGovernance(text, name);
  if (!parsed.ok) return await refuse(parsed.problems);
  const resolved = resolveReferences(parsed.governance, dirname(resolve(file)), process.env, options);
  if (!resolved.ok) return await refuse(resolved.problems);
  return { text, name, governance: parsed.governance, values: resolved.values };
}

/** Fails with the problems, each with its file and line. */
export async function refuse(problems: readonly Problem[]): Promise<never> {
  const { formatProblem } = await import('../broker/config-file/problems.ts');
  throw new CommandFailed(problems.map(formatProblem).join('\n'));
}
