/** Plans audit sinks: secrets are compared in memory and stored sealed; the position of a sink is kept. */
import {
  MAX_SINKS,
  makesSecret,
  NO_AUDIT_FOLDER,
  type SinkEntry,
  settingsIn,
  sinkSecretProblem,
} from '../config-file/audit-sinks.ts';
import { difference, sameJson } from '../config-file/differences.ts';
import { entriesOf } from '../config-file/governance.ts';
import { missingIn, secretIn, secretKey } from '../config-file/secrets.ts';
import { keepsSinkSecret, sinkSettings } from '../config-file/stored-settings.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { Secret } from '../crypto/secret.ts';
import { addSink, changeSink, deleteSink, newSink, type SinkWithLog } from '../store/audit-sinks.ts';
import { findReceiptLog } from '../store/receipt-logs.ts';
import { addProblem, addStep, holdsSecret, leaveOut, type Planning } from './planning.ts';

/** The section is complete: sinks that it does not list are removed. */
export function planAuditSinks(planning: Planning): void {
  const { present, organisationId } = planning;
  const sinks = planning.governance.document.audit_sinks;
  if (sinks === undefined) return;
  if (Object.keys(sinks).length > MAX_SINKS)
    addProblem(planning, ['audit_sinks'], `has more than ${MAX_SINKS} sinks, which is the maximum.`);
  for (const { id, name, kind, next_index, log_size } of present.sinks) {
    if (Object.hasOwn(sinks, name)) continue;
    const left = Number(log_size) - next_index;
    const details = [`kind: ${kind}`, `rows not yet acknowledged by its receiver: ${Math.max(0, left)}`];
    addStep(planning, { action: 'delete', kind: 'audit_sink', name, details }, (db) =>
      deleteSink(db, { organisation_id: organisationId, id }),
    );
  }
  for (const [name, entry] of entriesOf(sinks))
    planSink(
      planning,
      name,
      entry,
      present.sinks.find((sink) => sink.name === name),
    );
}

function planSink(planning: Planning, name: string, entry: SinkEntry, known: SinkWithLog | undefined): void {
  const { organisationId, vault, now, governance } = planning;
  const { kind, format } = entry;
  const settings = settingsIn(entry);
  const isOther = known !== undefined && known.kind !== kind;
  const stored = known && !isOther ? { ...known, settings: sinkSettings(known) } : undefined;
  // As for owners; an existing one stays, and its state says that it fails.
  if (kind === 'file' && !stored && !planning.hasAuditFolder)
    addProblem(planning, ['audit_sinks', name, 'kind'], NO_AUDIT_FOLDER);
  const keeps = known !== undefined && stored?.secret != null && keepsSinkSecret(vault, known, settings);
  const secret = secretOf(planning, name, entry, settings, keeps ? stored.secret_reference : null);
  const lacks =
    sinkSecretProblem(kind, settings, undefined) ?? (makesSecret(kind, settings) ? 'is missing' : undefined);
  if (!entry.secret && !keeps && lacks !== undefined)
    addProblem(planning, ['audit_sinks', name], `secret: ${lacks}. Name it with { env: NAME } or { file: PATH }.`);
  const drops = !entry.secret && stored?.secret != null && !keeps;
  const place = { table: 'audit_sinks' as const, organisationId, rowId: stored?.id ?? uuidv4() };
  // A stored secret that cannot be opened is replaced by the one that came with the file.
  const replaced =
    secret !== undefined && (!stored?.secret || holdsSecret(vault, place, stored.secret, secret) !== true);
  const named = entry.secret && governance.origin === 'file' ? secretKey(entry.secret) : undefined;
  const reference = named ?? (drops ? null : (stored?.secret_reference ?? null));
  const details = [
    ...difference('kind', known?.kind, kind),
    ...difference('format', known?.format, format),
    // What cannot be read is written again.
    ...(stored?.settings && sameJson(stored.settings, settings)
      ? []
      : difference('settings', stored?.settings, settings)),
    ...difference('secret from', stored?.secret_reference, reference),
    ...(replaced && stored?.secret ? ['secret: changed'] : []),
    ...(drops ? ['secret: removed'] : []),
  ];
  if (details.length === 0 && !replaced && stored) return;
  const row = {
    kind,
    format,
    settings: JSON.stringify(settings),
    secret_reference: reference,
    retry_at: null,
    ...(replaced && { secret: vault.seal(place, secret.reveal()) }),
    ...(drops && { secret: null }),
  };
  addStep(planning, { action: known ? 'update' : 'create', kind: 'audit_sink', name, details }, async (db) => {
    const ref = { organisation_id: organisationId, id: place.rowId };
    if (stored) return await changeSink(db, ref, row);
    // Another kind is another receiver, which continues at the position of the previous one, and stays paused with it.
    if (known) await deleteSink(db, known);
    const size = (await findReceiptLog(db, organisationId))?.size ?? 0;
    const next = known?.next_index ?? (entry.from === 'beginning' ? 0 : size);
    const status = known?.status ?? 'active';
    await addSink(db, { ...newSink({ ...ref, name, created_at: now, next_index: next, status }), ...row });
  });
}

/** Returns the new secret, if any. `kept`: the origin of the stored secret, which stays unless the file has another one. */
function secretOf(
  planning: Planning,
  name: string,
  entry: SinkEntry,
  settings: Record<string, unknown>,
  kept: string | null,
): Secret | undefined {
  if (!entry.secret) return undefined;
  const path = ['audit_sinks', name, 'secret'];
  if (entry.kind === 'file') {
    addProblem(planning, path, 'a file has none; leave it out.');
    return undefined;
  }
  if (!planning.comparesSecrets) return undefined;
  const secret = secretIn(planning.resolved, entry.secret);
  if (!secret) {
    leaveOut(planning, path, missingIn(planning.resolved, entry.secret), kept === secretKey(entry.secret));
    return undefined;
  }
  const wrong = sinkSecretProblem(entry.kind, settings, secret.reveal());
  if (wrong === undefined) return secret;
  addProblem(planning, path, `the value of ${secretKey(entry.secret)}: ${wrong}.`);
  return undefined;
}
