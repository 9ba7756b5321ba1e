import type { Command } from 'commander';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { CommandFailed } from '../failure.ts';
import { readText } from '../read-text.ts';
import { addVerifyExport } from './verify-export.ts';
import { addVerifySave } from './verify-save.ts';

export function addVerifyCommand(program: Command): void {
  const verify = program.command('verify').description('verify receipts and receipt logs offline');
  addVerifySave(verify);
  addVerifyExport(verify);
  verify
    .command('receipt [file]')
    .description(
      'verify a receipt (compact JWS, or the JSON of /v1/audit/{id}/receipt) with a saved key set; reads stdin without a file',
    )
    .requiredOption('--keys <file>', 'key set saved from /.well-known/svc-receipt-keys.json')
    .option('--json', 'print JSON')
    .action(async (file: string | undefined, options: { keys: string; json?: boolean }) => {
      const { verifyReceipt } = await import('../../broker/audit/verify-receipt.ts');
      const result = verifyReceipt(
        read(file === undefined || file === '-' ? 0 : file, 'receipt'),
        read(options.keys, 'key set'),
      );
      if (!result.ok) throw new CommandFailed(`The receipt does not verify: ${result.error}`);
      const { payload } = result;
      process.stdout.write(
        options.json
          ? `${JSON.stringify({ ok: true, kid: result.kid, payload }, null, 2)}\n`
          : `The receipt is genuine: signed by key ${result.kid}.\n` +
              `  ${payload.result ?? payload.reason}: ${whatOf(payload)}\n` +
              `  reason ${payload.reason}, at ${new Date(Number(payload.iat) * 1000).toISOString()}, audit row ${payload.jti}\n`,
      );
    });
}

/** Describes who requested what; for an event, as much as is known. */
function whatOf({ agent, method, platform, path, scope, organisation, change }: JsonObject): string {
  const { by, how } = (change as JsonObject | undefined) ?? {};
  const who = how === 'token' ? 'by itself' : by && `by owner ${by}`;
  const parts = [agent, method, platform, path, scope && `(${scope})`, who].filter(Boolean);
  return parts.length > 0 ? parts.join(' ') : `organisation ${organisation}`;
}

const read = (file: string | 0, what: string): string =>
  readText(file, `The ${what} ${file === 0 ? 'on standard input' : file}`);
