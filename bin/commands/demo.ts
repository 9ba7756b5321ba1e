import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { canAsk } from '../terminal/prompt.ts';

/** `stop`: aborted on a signal; the demo then ends and removes its files. */
export function addDemoCommand(program: Command, stop?: AbortSignal): void {
  program
    .command('demo')
    .description('show a read, a refusal, an approval and their receipts, on a temporary broker and platform')
    .option('--yes', 'approve the held call without asking, as without a terminal')
    .option('--json', 'print JSON; approves without asking')
    .action(async (options: { json?: boolean; yes?: boolean }) => {
      const { runDemo } = await import('../demo.ts');
      const folder = mkdtempSync(join(tmpdir(), 'agent-broker-demo-'));
      const isTerminal = canAsk() && process.stdout.isTTY === true;
      try {
        const tell = options.json ? () => {} : (text: string) => void process.stdout.write(`${text}\n`);
        const story = await runDemo(folder, { tell, asks: isTerminal && !options.json && !options.yes, stop });
        if (options.json) process.stdout.write(`${JSON.stringify(story, null, 2)}\n`);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
}
