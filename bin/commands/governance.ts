import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Change } from '../../broker/config-plan/planning.ts';
import { type BrokerConnection, type ConnectionOptions, connectAsOwner, print, withConnection } from '../connection.ts';
import { CommandFailed } from '../failure.ts';
import { readGovernanceFile } from '../governance-file.ts';
import { PROGRAM } from '../program-name.ts';

type Options = ConnectionOptions & { pipeline?: string; json?: boolean; withoutSecrets?: boolean; check?: boolean };
type Answer = {
  changes: Change[];
  warnings: string[];
  workloads?: { agent: string; agent_id: string; audience: string }[];
  bootstrap_tokens?: { agent: string; agent_id: string; token: string; expires_at: string }[];
};

export function addGovernanceCommands(program: Command): void {
  withPipeline(
    program.command('plan <file>').description('show what a governance file would change; - is standard input'),
  )
    .option('--without-secrets', 'read and send no secrets; the plan then does not show whether they change')
    .option('--check', 'exit with 1 if anything would change, for jobs that compare the broker with the file')
    .option('--json', 'print JSON')
    .action(async (file: string, options: Options) => {
      const answer = await send('plan', file, options);
      print(options, answer, () => describe(answer, 'would be made', 'Nothing would change.'));
      if (options.check && answer.changes.length > 0) process.exitCode = 1;
    });

  withPipeline(
    program.command('apply <file>').description('apply a governance file in one transaction; - is standard input'),
  )
    .option('--json', 'print JSON')
    .action(async (file: string, options: Options) => {
      const answer = await send('apply', file, options);
      print(options, answer, () => describe(answer, 'made', 'Nothing changed: the store is as the file says.'));
    });

  withPipeline(program.command('export [file]').description('write the current state as a governance file'))
    .option('--json', 'print JSON')
    .action(async (to: string | undefined, options: Options) => {
      const file = to === '-' ? undefined : to;
      const { text } = (await (await connect(options)).ask('GET', '/owner/governance')) as { text: string };
      // A file or a pipe gets the text exactly as it is.
      if (file === undefined && !options.json && !process.stdout.isTTY) process.stdout.write(`${text.trimEnd()}\n`);
      else if (file === undefined) print(options, { text }, () => text.trimEnd());
      else {
        writeNew(file, text);
        print(options, { file }, () => `Written to ${file}.`);
      }
    });
}

/** Writes a new file, or none: what was written of an incomplete one would be a file that leaves things out. Throws CommandFailed. */
function writeNew(file: string, text: string): void {
  let opened: number | undefined;
  try {
    opened = openSync(file, 'wx');
    writeFileSync(opened, text);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new CommandFailed(`${file} is there already, and is kept. Name another file.`);
    if (opened !== undefined) rmSync(file, { force: true });
    throw new CommandFailed(`${file} cannot be written (${code}). Nothing was written.`);
  } finally {
    if (opened !== undefined) closeSync(opened);
  }
}

const withPipeline = (command: Command): Command =>
  withConnection(command).option(
    '--pipeline <address>',
    'as the pipeline that "pipeline add" printed this of (or AGENT_BROKER_PIPELINE)',
  );

async function connect(options: Options): Promise<BrokerConnection> {
  const pipeline = options.pipeline ?? (process.env.AGENT_BROKER_PIPELINE || undefined);
  if (pipeline === undefined) return await connectAsOwner(options);
  const { connectAsPipeline } = await import('../pipelines/connect-pipeline.ts');
  return await connectAsPipeline(pipeline, options);
}

/** Reads the file, and the secrets that it references, on this machine, where they are; the broker receives the values and seals them. */
async function send(what: 'plan' | 'apply', file: string, options: Options): Promise<Answer> {
  const { withoutSecrets } = options;
  const { text, name, values: resolved } = await readGovernanceFile(file, { secrets: !withoutSecrets });
  const values = Object.fromEntries([...resolved].map(([key, secret]) => [key, secret.reveal()]));
  const broker = await connect(options);
  return (await broker.ask('POST', `/owner/governance/${what}`, {
    text,
    file: name,
    values,
    ...(withoutSecrets && { without_secrets: true }),
  })) as Answer;
}

const SIGNS = { create: '+', update: '~', delete: '-' } as const;

function describe(
  { changes, warnings, workloads = [], bootstrap_tokens: tokens = [] }: Answer,
  verb: string,
  none: string,
): string {
  const lines = warnings.map((warning) => `warning: ${warning}`);
  for (const { action, kind, name, details } of changes) {
    lines.push(`${SIGNS[action]} ${kind} ${name}`);
    for (const detail of details) lines.push(`    ${detail}`);
  }
  lines.push(changes.length === 0 ? none : `${changes.length} change${changes.length === 1 ? '' : 's'} ${verb}.`);
  for (const { agent, audience } of workloads)
    lines.push('', `Tokens of the workload of ${agent} are issued for the audience`, `  ${audience}`);
  for (const { agent, token, expires_at } of tokens)
    lines.push('', `Bootstrap token of ${agent}, shown once, good until ${expires_at}:`, `  ${token}`);
  if (tokens.length > 0)
    lines.push(
      '',
      `With it the agent brings its key: ${PROGRAM} agent create NAME --invite abt_… (or POST /v1/agents/bind).`,
    );
  return lines.join('\n');
}
