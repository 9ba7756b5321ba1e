import type { Command } from 'commander';
import type { Check } from '../doctor-checks.ts';

const MARKS: Record<Check['result'], string> = { ok: 'ok  ', warning: 'warn', failed: 'FAIL', skipped: '-   ' };

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('look at what an agent needs: address, clock, key, status and grants; and say what to do')
    .option('--profile <file>', 'profile of the agent (or AGENT_BROKER_PROFILE)')
    .option('--json', 'print JSON')
    .action(async (options: { profile?: string; json?: boolean }) => {
      const checks = await examineAll(options.profile);
      const ok = checks.every(({ result }) => result !== 'failed');
      process.stdout.write(options.json ? `${JSON.stringify({ ok, checks }, null, 2)}\n` : inWords(checks, ok));
      if (!ok) process.exitCode = 1;
    });
}

async function examineAll(file: string | undefined): Promise<Check[]> {
  const { ProfileError, readProfile } = await import('../../mcp/profile.ts');
  const { examine } = await import('../doctor-checks.ts');
  try {
    const profile = readProfile(process.env, file);
    return [{ check: 'profile', result: 'ok', detail: `agent ${profile.agentId}` }, ...(await examine(profile))];
  } catch (error) {
    if (!(error instanceof ProfileError)) throw error;
    const advice = 'Make an agent with: agent-broker agent create NAME';
    return [{ check: 'profile', result: 'failed', detail: error.message, advice }];
  }
}

function inWords(checks: readonly Check[], ok: boolean): string {
  const lines = checks.flatMap(({ check, result, detail, advice }) => [
    `${MARKS[result]}  ${check.padEnd(8)} ${detail}`,
    ...(advice === undefined ? [] : [`               ${advice}`]),
  ]);
  const end = ok ? 'The agent can call.' : 'The agent cannot call yet.';
  return `${[...lines, '', end].join('\n')}\n`;
}
