import { hash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import type { Command } from 'commander';
import { filesIn } from '../evidence/save-log.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { readText } from '../read-text.ts';

/** Adds `verify export` to `verify`. */
export function addVerifyExport(verify: Command): void {
  verify
    .command('export [file]')
    .description(
      'verify an export of the receipt log (GET /owner/log/export), or a folder of verify save, offline: which rows were changed, removed, inserted or moved; reads stdin without a file',
    )
    .option('--key <file>', 'verifier keys saved from /.well-known/svc-log/<organisation>; a folder contains them')
    .option(
      '--checkpoint <file...>',
      'checkpoints that you kept: the log has to go on from each of them (from /orgs/<organisation>/checkpoint, or inclusion.checkpoint of a receipt)',
    )
    .option(
      '--receipt-keys <file>',
      'key set saved from /.well-known/svc-receipt-keys.json: checks the receipts, too, and has to be there where rows were deleted since; a folder has it',
    )
    .option(
      '--first <row>',
      'the export starts at this row (?first=): earlier rows may be missing, and checkpoints of fewer rows are not compared',
    )
    .option('--json', 'print JSON')
    .action(async (argument: string | undefined, options: Options) => {
      const given = argument === '-' ? undefined : argument;
      const stat = given === undefined ? undefined : statSync(given, { throwIfNoEntry: false });
      if (given !== undefined && stat === undefined)
        throw new CommandFailed(`The export ${given} cannot be read (ENOENT).`);
      const saved = given !== undefined && stat?.isDirectory() ? filesIn(given) : undefined;
      const file = saved?.log ?? given;
      const key = options.key ?? saved?.key;
      if (key === undefined) throw new WrongUsage('Say with --key which keys sign the log.');
      const receiptKeys = options.receiptKeys ?? saved?.receiptKeys;
      const { linesOf } = await import('../../broker/console/static/verify/export-lines.js');
      const { verifyLogExport } = await import('../../broker/console/static/verify/log-export.js');
      const { readVerifierKeys } = await import('../../broker/console/static/verify/note.js');
      const { remarksOf } = await import('../../broker/console/static/verify/remarks.js');
      const keys = await readVerifierKeys(read(key)).catch((error: Error) => {
        throw new CommandFailed(`The keys in ${key} cannot be used. ${error.message}`);
      });
      const bytes = Readable.toWeb(file === undefined ? process.stdin : createReadStream(file));
      const verdict = await verifyLogExport(linesOf(bytes.pipeThrough(new TextDecoderStream())), {
        keys,
        checkpoints: [...(saved?.checkpoint ?? []), ...(options.checkpoint ?? [])].map((name) => ({
          name,
          note: read(name),
        })),
        ...(receiptKeys !== undefined && { receiptKeys: keySetIn(receiptKeys) }),
        digest: (bytes) => hash('sha256', bytes, 'buffer'),
        first: indexIn(options.first),
      }).catch((error: NodeJS.ErrnoException) => {
        throw new CommandFailed(
          `The export ${file ?? 'on standard input'} cannot be read (${error.code ?? error.message}).`,
        );
      });
      const { ok, origin, size, rows, problems, more } = verdict;
      if (options.json) process.stdout.write(`${JSON.stringify(verdict, null, 2)}\n`);
      else if (ok)
        process.stdout.write(
          `Nothing was changed, removed, inserted or moved: ${rows} rows ` +
            `are in the log ${origin} of ${size} rows, which its key signed.\n` +
            remarksOf(verdict)
              .map((sentence) => `  ${sentence}\n`)
              .join(''),
        );
      if (ok) return;
      const told = problems.map(({ kind, detail }) => `  ${kind}: ${detail}`).join('\n');
      throw new CommandFailed(`The export does not verify:\n${told}${more > 0 ? `\n  and ${more} more.` : ''}`);
    });
}

type Options = { key?: string; checkpoint?: string[]; receiptKeys?: string; first?: string; json?: boolean };

function indexIn(first = '0'): number {
  if (!/^\d{1,15}$/.test(first)) throw new WrongUsage('--first is the index of a row: a whole number.');
  return Number(first);
}

const read = (file: string): string => readText(file, file);

function keySetIn(file: string): { kid?: string }[] {
  const text = read(file);
  try {
    const { keys } = JSON.parse(text) as { keys: { kid?: string }[] };
    if (Array.isArray(keys)) return keys;
  } catch {
    // Reported by the throw below.
  }
  throw new CommandFailed(`${file} is no key set.`);
}
