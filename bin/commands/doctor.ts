import { homedir } from 'node:os';
import type { Command } from 'commander';
import type { Check } from '../doctor/check.ts';
import { WrongUsage } from '../failure.ts';
import { PROGRAM } from '../program-name.ts';
import { commandLine } from '../server-entry.ts';

const MARKS: Record<Check['result'], string> = { ok: 'ok  ', warning: 'warn', failed: 'FAIL', skipped: '-   ' };

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check address, clock, key, status and grants of an agent, and say what to do')
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .option(
      '--exposure',
      'look instead at what a command, after --, could use without the broker: keys, files, sockets',
    )
    .option('--metadata [host]', 'with --exposure: also check whether the metadata address of a cloud responds')
    .argument('[command...]', 'with --exposure: the command, after --')
    .option('--json', 'print JSON')
    .action(async (words: string[], options: Options) => {
      if (options.exposure) return await tellExposure(words, options);
      if (words.length > 0 || options.metadata) throw new WrongUsage('A command and --metadata go with --exposure.');
      const checks = await examineAll(options.profile);
      const ok = checks.every(({ result }) => result !== 'failed');
      process.stdout.write(options.json ? `${JSON.stringify({ ok, checks }, null, 2)}\n` : formatChecks(checks, ok));
      if (!ok) process.exitCode = 1;
    });
}

type Options = { profile?: string; json?: boolean; exposure?: true; metadata?: string | true };

async function tellExposure(words: readonly string[], { json, metadata }: Options): Promise<void> {
  const { describeExposure, findExposure, METADATA } = await import('../exposure/exposure.ts');
  const { printResult } = await import('../terminal/output.ts');
  const place = { env: process.env, home: process.env.HOME || homedir(), cwd: process.cwd() };
  const findings = await findExposure(place, metadata === true ? METADATA : metadata);
  const ok = findings.length === 0;
  const isAsked = metadata !== undefined;
  const result = { ok, findings, metadata: isAsked ? 'asked' : 'not asked' };
  printResult({ json: json === true }, result, () => describeExposure(findings, words, isAsked));
  if (!ok) process.exitCode = 1;
}

async function examineAll(file: string | undefined): Promise<Check[]> {
  const { NoProfile, ProfileError, profilePath, readProfile } = await import('../../mcp/profile.ts');
  const { examine } = await import('../doctor/checks.ts');
  try {
    const profile = readProfile(process.env, file);
    return [{ check: 'profile', result: 'ok', detail: `agent ${profile.agentId}` }, ...(await examine(profile))];
  } catch (error) {
    if (!(error instanceof ProfileError)) throw error;
    const place = commandLine(['--out', profilePath(process.env, file) ?? '']);
    const advice = error instanceof NoProfile ? `Make an agent with: ${PROGRAM} agent create NAME ${place}` : undefined;
    return [{ check: 'profile', result: 'failed', detail: error.message, ...(advice !== undefined && { advice }) }];
  }
}

function formatChecks(checks: readonly Check[], ok: boolean): string {
  const lines = checks.flatMap(({ check, result, detail, advice }) => [
    `${MARKS[result]}  ${check.padEnd(8)} ${detail}`,
    ...(advice === undefined ? [] : [`               ${advice}`]),
  ]);
  const end = ok ? 'The agent can make calls.' : 'The agent cannot make calls yet.';
  return `${[...lines, '', end].join('\n')}\n`;
}
