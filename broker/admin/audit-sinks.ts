/** Sinks that the audit is pushed to. Their secrets are sealed and never shown again. */

import { randomBytes } from 'node:crypto';
import { type Changing, type ChangingOwner, recordChange, recordInTurn } from '../audit/record-change.ts';
import { deliverTo } from '../audit-push/kinds.ts';
import { deliveringTo } from '../audit-push/pusher.ts';
import type { Uses } from '../broker.ts';
import {
  type Format,
  MAX_SINKS,
  makesSecret,
  NO_AUDIT_FOLDER,
  type SinkKindName,
  settingsIn,
  sinkSecretProblem,
} from '../config-file/audit-sinks.ts';
import { keepsSinkSecret, sinkSettings } from '../config-file/stored-settings.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { Secret } from '../crypto/secret.ts';
import {
  addSink,
  changeSink,
  deleteSink,
  findSink,
  listSinks,
  newSink,
  type SinkWithLog,
} from '../store/audit-sinks.ts';
import { findReceiptLog } from '../store/receipt-logs.ts';
import type { Db } from '../store/store.ts';
import type { AuditSinkTable } from '../store/tables/receipt-log.ts';
import { ChangeRefused } from './refused.ts';

/** A sink, in the form that owners see. */
export type ReadSink = {
  sink: SinkWithLog;
  /** Undefined when the stored ones cannot be read. */
  settings: Record<string, unknown> | undefined;
};

/** The settings in the form of their kind; see config-file/audit-sinks.ts. */
export type GivenSink = { kind: SinkKindName } & Record<string, unknown>;

/** The first row to send: the next new row, the first row of the log, or the row with this index. */
export type Start = 'now' | 'beginning' | number;

const read = (sink: SinkWithLog): ReadSink => ({
  sink,
  settings: sinkSettings(sink),
});

/** Loads a sink. Throws ChangeRefused when there is none. */
async function load(db: Db, organisationId: string, id: string): Promise<SinkWithLog> {
  const found = await findSink(db, { organisation_id: organisationId, id });
  if (!found) throw new ChangeRefused('not_found', 'The organisation has no such audit sink.');
  return found;
}

/** Lists the sinks of an organisation, by name. */
export const readSinks = async (db: Db, organisationId: string): Promise<ReadSink[]> =>
  (await listSinks(db, organisationId)).map(read);

/** Converts the start to an index of the log. Throws ChangeRefused. */
async function indexOf(db: Db, organisationId: string, start: Start): Promise<number> {
  const size = (await findReceiptLog(db, organisationId))?.size ?? 0;
  if (start === 'now') return size;
  if (start === 'beginning') return 0;
  if (start > size) throw new ChangeRefused('invalid_request', `from: the receipt log has ${size} rows.`);
  return start;
}

/** Throws ChangeRefused when the sink does not accept the secret. */
function checkSecret(kind: SinkKindName, settings: Record<string, unknown>, secret: Secret | undefined): void {
  const problem = sinkSecretProblem(kind, settings, secret?.reveal());
  if (problem !== undefined) throw new ChangeRefused('invalid_request', `secret: ${problem}.`);
}

/** `made`: the secret that the broker generated; returned only once. */
export type CreatedSink = ReadSink & { made: Secret | undefined };

/** Throws ChangeRefused, or AuditUnavailable: then nothing is changed. */
export async function createSink(
  services: Changing & Uses<'config' | 'vault'>,
  by: ChangingOwner,
  command: { name: string; format: Format; from: Start; given: GivenSink; secret: Secret | undefined },
): Promise<CreatedSink> {
  const { vault, clock, config } = services.broker;
  const { name, format, given, from, secret: brought } = command;
  const { kind } = given;
  if (kind === 'file' && config.auditFolder === undefined)
    throw new ChangeRefused('invalid_request', `kind: ${NO_AUDIT_FOLDER}`);
  const settings = settingsIn(given);
  const isMade = brought === undefined && makesSecret(kind, settings);
  const made = isMade ? new Secret(`whsec_${randomBytes(32).toString('base64')}`) : undefined;
  const secret = brought ?? made;
  checkSecret(kind, settings, secret);
  const organisationId = by.owner.organisation_id;
  const id = uuidv4();
  return await recordInTurn(services, by, { reason: 'audit_sink_created' }, async (tx, note) => {
    if ((await listSinks(tx, organisationId)).length >= MAX_SINKS)
      throw new ChangeRefused('conflict', `There are ${MAX_SINKS} audit sinks already: remove one first.`);
    const sink: AuditSinkTable = newSink({
      organisation_id: organisationId,
      id,
      name,
      kind,
      format,
      settings: JSON.stringify(settings),
      secret: secret ? vault.seal({ table: 'audit_sinks', organisationId, rowId: id }, secret.reveal()) : null,
      next_index: await indexOf(tx, organisationId, from),
      created_at: clock(),
    });
    if (!(await addSink(tx, sink)))
      throw new ChangeRefused(
        'conflict',
        `There is an audit sink "${name}" already: choose another name, or change it.`,
      );
    note({ sink: { id, name, kind, format, from: sink.next_index } });
    return { ...read(await load(tx, organisationId, id)), made };
  });
}

export type SinkChange = {
  id: string;
  status?: 'active' | 'paused' | undefined;
  from?: Start | undefined;
  given?: GivenSink | undefined;
  format?: Format | undefined;
  secret?: Secret | undefined;
};

/** Changes the given members only. A failed push is retried immediately. Throws ChangeRefused; AuditUnavailable. */
export async function changeAuditSink(
  services: Changing & Uses<'vault'>,
  by: ChangingOwner,
  { id, status, from, given, format, secret }: SinkChange,
): Promise<ReadSink> {
  const { vault } = services.broker;
  const organisationId = by.owner.organisation_id;
  return await recordInTurn(services, by, { reason: 'audit_sink_changed' }, async (tx, note) => {
    const before = await load(tx, organisationId, id);
    const kind = before.kind as SinkKindName;
    if (given && given.kind !== kind)
      throw new ChangeRefused('invalid_request', `kind: this sink is of kind "${kind}"; add another sink.`);
    const settings = given ? settingsIn(given) : (sinkSettings(before) ?? {});
    if (secret) checkSecret(kind, settings, secret);
    else if (given && !keepsSinkSecret(vault, before, settings))
      throw new ChangeRefused('invalid_request', 'secret: is missing; another one is needed for that.');
    const next = from === undefined ? undefined : await indexOf(tx, organisationId, from);
    const place = { table: 'audit_sinks', organisationId, rowId: id } as const;
    await changeSink(tx, before, {
      ...(given && { settings: JSON.stringify(settings) }),
      ...(format && { format }),
      ...(status && { status }),
      ...(next !== undefined && { next_index: next, batch_end: null }),
      // The secret reference of a governance file names the former secret.
      ...(secret && { secret: vault.seal(place, secret.reveal()), secret_reference: null }),
      retry_at: null,
    });
    note({
      sink: { id, name: before.name, kind },
      ...(given && { settings_changed: true }),
      ...(format && { format }),
      ...(status && { status }),
      ...(next !== undefined && { from: next, was_at: before.next_index }),
      ...(secret && { secret_replaced: true }),
    });
    return read(await load(tx, organisationId, id));
  });
}

/** Removes a sink with its secret; rows that were sent stay at the receiver. Throws ChangeRefused; AuditUnavailable. */
export async function removeAuditSink(services: Changing, by: ChangingOwner, id: string): Promise<void> {
  await recordInTurn(services, by, { reason: 'audit_sink_removed' }, async (tx, note) => {
    const { name, kind, next_index } = await load(tx, by.owner.organisation_id, id);
    await deleteSink(tx, { organisation_id: by.owner.organisation_id, id });
    note({ sink: { id, name, kind, was_at: next_index } });
  });
}

/** Tests whether the receiver would accept rows, without sending one. Recorded in the audit because it uses the secret. */
export async function testAuditSink(
  services: Changing & Uses<'auditFolder' | 'baseUrl' | 'did' | 'storeOutage' | 'vault' | 'outbound'>,
  by: ChangingOwner,
  id: string,
): Promise<{ ok: boolean; detail: string }> {
  const sink = await load(services.broker.store.db, by.owner.organisation_id, id);
  const delivered = await deliverTo(deliveringTo(services.broker, sink));
  const ok = delivered.kind === 'arrived';
  await recordChange(services, by, { reason: 'audit_sink_tested' }, async (_tx, note) =>
    note({ sink: { id, name: sink.name, kind: sink.kind }, ok }),
  );
  return { ok, detail: delivered.kind === 'arrived' ? 'It would take rows.' : delivered.why };
}
