import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import { PROGRAM } from '../program-name.ts';
import { commandLine } from '../server-entry.ts';
import { line } from '../terminal/line.ts';
import { printResult } from '../terminal/output.ts';

/** Adds `verify save` to `verify`. */
export function addVerifySave(verify: Command): void {
  withConnection(
    verify
      .command('save <folder>')
      .description(
        'save the receipt log with the keys and checkpoints to verify it into a folder, for "verify export <folder>"; a later run replaces the log and adds a checkpoint',
      )
      .option('--json', 'print JSON'),
  ).action(async (folder: string, options: ConnectionOptions & { json?: boolean }) => {
    const { saveLog } = await import('../evidence/save-log.ts');
    const saved = await saveLog(folder, options);
    printResult(options, saved, () => [
      line`Saved the receipt log of ${saved.size} rows. ${folder} has ${saved.checkpoints} checkpoint${saved.checkpoints === 1 ? '' : 's'} of it. Keep it on a machine other than the broker's.`,
      ...(saved.newLogKeys > 0
        ? [
            line`The log has ${saved.newLogKeys} more verifier key${saved.newLogKeys === 1 ? '' : 's'} than before: an event log_key_announced says so.`,
          ]
        : []),
      ...saved.newReceiptKeys.map(
        (kid) =>
          line`The broker publishes a key of receipts that it did not publish before: ${kid}. Unless an operator made it (keys rotate evidence), find out why before you trust this folder.`,
      ),
      line`Check it, on any machine: ${PROGRAM} verify export ${commandLine([folder])}`,
    ]);
  });
}
