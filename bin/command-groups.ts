/** The commands by topic, as `--help` lists them. */
import type { Command } from 'commander';

const GROUPS: Readonly<Record<string, readonly string[]>> = {
  'Daily work:': ['inbox', 'approve', 'correct', 'deny', 'standing', 'activity', 'channel'],
  'What agents may do:': [
    'agent',
    'grant',
    'policy',
    'platform',
    'connection',
    'add',
    'add-mcp',
    'secret',
    'github-app',
  ],
  'Governance as code:': ['plan', 'apply', 'export', 'pipeline'],
  'On the agent’s side:': [
    'connect',
    'mcp',
    'run',
    'request-access',
    'request-consent',
    'token',
    'git-setup',
    'git-credential',
    'doctor',
  ],
  'Running a broker:': [
    'serve',
    'demo',
    'owner',
    'organisation',
    'audit-sink',
    'verify',
    'keys',
    'migrate',
    'backup',
    'restore',
    'restored',
    'completion',
  ],
};

/** Assigns each command its topic; commands without a topic are listed under "Commands". */
export function groupByTopic(program: Command): void {
  for (const command of program.commands) {
    const [group] = Object.entries(GROUPS).find(([, names]) => names.includes(command.name())) ?? [];
    if (group !== undefined) command.helpGroup(group);
  }
}
