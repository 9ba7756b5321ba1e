/** Manages audit sinks, the destinations that the audit is pushed to: lists, adds, tests, pauses, moves and removes them. */

import type { AuditSink, Body } from '../../broker/console/answers.ts';
import { parseStrictJson } from '../../json/strict.ts';
import { commandWith } from '../command-with.ts';
import type { ConnectionOptions } from '../connection.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { findNamed } from '../find-named.ts';
import { type OwnerApi, openOwnerApi } from '../owner-api.ts';
import { readSecret } from '../read-secret.ts';
import { line, styled } from '../terminal/line.ts';
import { printJson, printLines, printResult, terminalWidth } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';
import { expectUrlSetting } from '../url-setting.ts';

export type Options = ConnectionOptions & { json?: boolean };
export type AddOptions = Options & { format?: string; from?: string; secretStdin?: boolean; secretEnv?: string };

const COLUMNS = [
  { title: 'NAME', least: 10 },
  { title: 'KIND', least: 7 },
  { title: 'FORMAT', least: 6 },
  { title: 'BEHIND', least: 6 },
  { title: 'STATE', least: 10 },
];

function stateOf({ status, failing_since, last_error, rejected_rows }: AuditSink): string {
  const rejected = rejected_rows > 0 ? `, ${rejected_rows} rows rejected` : '';
  if (status === 'paused') return `paused${rejected}`;
  if (failing_since !== null) return `failing since ${failing_since}: ${last_error ?? ''}${rejected}`;
  return `working${rejected}`;
}

export async function listSinks(options: Options): Promise<void> {
  const { sinks } = await (await openOwnerApi(options)).ask('GET', '/owner/audit-sinks');
  const rows = sinks.map((one) => [
    styled('bold', one.name),
    line`${one.kind}`,
    line`${one.format}`,
    line`${one.rows_behind}`,
    line`${stateOf(one)}`,
  ]);
  printResult(options, sinks, () =>
    rows.length === 0
      ? [line`There are no audit sinks. Add one: ${commandWith(options, 'audit-sink add NAME KIND')}`]
      : table(COLUMNS, rows, terminalWidth()),
  );
}

/** Parses `key=value` settings into the form that the owner API accepts. Throws WrongUsage. */
function settingsOf(given: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    given.map((setting) => {
      const at = setting.indexOf('=');
      if (at < 1)
        throw new WrongUsage(`"${setting}" is no setting: write key=value, such as url=https://siem.example/in.`);
      const [key, value] = [setting.slice(0, at), setting.slice(at + 1)];
      if (key === 'max_bytes' && /^\d{1,15}$/.test(value)) return [key, Number(value)];
      if (key === 'path_style' && /^(?:true|false)$/.test(value)) return [key, value === 'true'];
      return [key, value];
    }),
  );
}

/** Parses a start position: a word, or the index of a row. */
const startOf = (text: string): unknown => (/^\d{1,15}$/.test(text) ? Number(text) : text);

/** A secret with several parts is given as a JSON object. */
function secretOf(text: string): unknown {
  const parsed = parseStrictJson(text);
  return parsed.ok && typeof parsed.value === 'object' && parsed.value !== null ? parsed.value : text;
}

/** Adds an audit sink. Throws WrongUsage; CommandFailed with the broker's reason for a refusal. */
export async function addSink(
  name: string,
  kind: string,
  given: readonly string[],
  { secretStdin, secretEnv, format, from, ...options }: AddOptions,
): Promise<void> {
  const settings = settingsOf(given);
  expectUrlSetting(kind, ['webhook', 'otlp', 's3'], settings, options);
  const hasSecret = secretStdin || secretEnv !== undefined;
  if (kind === 's3' && !hasSecret)
    throw new WrongUsage(
      'Give the key, too, by --secret-stdin or --secret-env: {"access_key_id":"…","secret_access_key":"…"}',
    );
  const secret = hasSecret
    ? await readSecret({ stdin: secretStdin, env: secretEnv }, 'the secret', '--secret-stdin or --secret-env')
    : undefined;
  const body = {
    ...settings,
    name,
    kind,
    ...(format !== undefined && { format }),
    ...(from !== undefined && { from: startOf(from) }),
    ...(secret !== undefined && { secret: secretOf(secret) }),
  };
  // The broker validates the kind: it may support more kinds than this command was written for.
  const made = await (await openOwnerApi(options)).ask(
    'POST',
    '/owner/audit-sinks',
    body as Body<'POST', '/owner/audit-sinks'>,
  );
  printResult(options, made, () => [
    line`The audit is pushed to ${styled('bold', name)} from row ${made.next_index} on. Try it: ${commandWith(options, `audit-sink test ${name}`)}`,
    ...(made.secret === undefined
      ? []
      : [line`The key with which the receiver verifies, shown this once: ${made.secret}`]),
  ]);
}

/** Tests sinks. Sets the exit code to 1 when a sink would not accept rows. */
export async function testSinks(given: readonly string[], options: Options): Promise<void> {
  const api = await openOwnerApi(options);
  const { sinks } = await api.ask('GET', '/owner/audit-sinks');
  const chosen = given.length === 0 ? sinks : given.map((name) => findNamed(api, 'audit sink', sinks, name));
  if (chosen.length === 0)
    throw new CommandFailed(`There are no audit sinks. Add one: ${api.command('audit-sink add NAME KIND')}`);
  const results = [];
  for (const { id, name, kind } of chosen) {
    const result = await api.ask('POST', `/owner/audit-sinks/${id}/test`, {});
    results.push({ id, name, kind, ...result });
    if (!result.ok) process.exitCode = 1;
    if (!options.json)
      printLines([line`${styled('bold', name)} (${kind}): ${result.ok ? 'works' : 'does not work'}. ${result.detail}`]);
  }
  if (options.json) printJson(results);
}

/** Pauses or resumes a sink, or moves it to another row. Throws CommandFailed. */
export async function changeSink(
  given: string,
  { status, from }: { status?: 'active' | 'paused'; from?: string },
  options: Options,
): Promise<void> {
  const api = await openOwnerApi(options);
  const { id, name } = await find(api, given);
  const change = { ...(status && { status }), ...(from !== undefined && { from: startOf(from) }) };
  const sink = await api.ask(
    'POST',
    `/owner/audit-sinks/${id}/settings`,
    change as Body<'POST', '/owner/audit-sinks/x/settings'>,
  );
  printResult(options, sink, () => [
    line`${styled('bold', name)} is ${sink.status}; the next row is ${sink.next_index}, and ${sink.rows_behind} wait.`,
  ]);
}

/** Removes a sink. Throws CommandFailed when it does not exist. */
export async function removeSink(given: string, options: Options): Promise<void> {
  const api = await openOwnerApi(options);
  const { id, name } = await find(api, given);
  const removed = await api.ask('DELETE', `/owner/audit-sinks/${id}`);
  printResult(options, removed, () => [line`The audit is no longer pushed to ${styled('bold', name)}.`]);
}

const find = async (api: OwnerApi, given: string): Promise<AuditSink> =>
  findNamed(api, 'audit sink', (await api.ask('GET', '/owner/audit-sinks')).sinks, given);
