/** Plans connections: credentials are compared in memory and stored sealed; plans never contain anything of them. */

import type { FormerConnection } from '../admin/agents/end-tokens.ts';
import { credentialOf, whyNotCredential } from '../admin/connections/connection-credential.ts';
import { documentConnections } from '../config-file/check-references.ts';
import { difference } from '../config-file/differences.ts';
import { entriesOf } from '../config-file/governance.ts';
import { listNames } from '../config-file/problems.ts';
import type { ConnectionEntry } from '../config-file/schema.ts';
import { isInParts, missingIn, secretIn, secretKey } from '../config-file/secrets.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import {
  changeConnection,
  deleteConnection,
  endForConnection,
  lockConnection,
  putConnection,
} from '../store/connections.ts';
import type { ConnectionTable } from '../store/tables/connections.ts';
import { deleteUpstreamTokens } from '../store/upstream-tokens.ts';
import { addProblem, addStep, holdsSecret, leaveOut, type Made, type Planning } from './planning.ts';

export function planConnections(planning: Planning): void {
  const { governance, present } = planning;
  for (const connection of present.connections) planning.connectionIds.set(connection.label, connection.id);
  const defaults = documentConnections(governance.document);
  for (const [name, entry] of entriesOf(governance.document.connections)) {
    const known = present.connections.find((connection) => connection.label === name);
    planConnection(planning, name, entry, known, defaults?.get(name)?.isDefault ?? false);
  }
}

function planConnection(
  planning: Planning,
  name: string,
  entry: ConnectionEntry,
  known: ConnectionTable | undefined,
  isDefault: boolean,
): void {
  const { organisationId, vault, now, governance } = planning;
  const id = known?.id ?? uuidv4();
  planning.connectionIds.set(name, id);
  const secret = planning.comparesSecrets ? secretOf(planning, name, entry, known) : undefined;
  const replaced = secret !== undefined && !holds(planning, known, secret, name);
  const moves = known !== undefined && known.platform_id !== entry.platform;
  const named = entry.secret && governance.origin === 'file' ? secretKey(entry.secret) : undefined;
  // What a platform gives (`givenBy`) comes from no reference.
  const reference = named ?? (replaced && !entry.secret ? null : (known?.secret_reference ?? null));
  const details = [
    ...difference('platform', known?.platform_id, entry.platform),
    ...difference('default', known ? known.is_default === 1 : undefined, isDefault),
    ...difference('idle seconds', inSeconds(known?.idle_ms), entry.idle_seconds ?? inSeconds(known?.idle_ms)),
    ...difference('wait seconds', inSeconds(known?.wait_ms), entry.wait_seconds ?? inSeconds(known?.wait_ms)),
    ...difference('secret from', known?.secret_reference, reference),
    ...(replaced && known?.credential ? ['secret: changed'] : []),
    ...(entry.secret && known && !known.credential ? ['secret: given'] : []),
    ...(moves ? ['tokens of people and static keys for it end'] : []),
    ...(known && (moves || replaced) ? whatBecomesOf(known, replaced, entry.platform) : []),
  ];
  // On a platform with tokens per person, people give their own, and the connection needs no secret itself.
  const needsNone = manifestOf(planning, entry.platform)?.per_person?.enabled === true;
  const keeps = known?.credential && !(moves && known.oauth !== null);
  if (!entry.secret && !keeps && !needsNone && !givenBy(planning, entry))
    planning.warnings.push({ path: ['connections', name], message: whyUnusable(planning, entry.platform) });
  if (known && secret === undefined) warnOfUnfit(planning, name, entry, known);
  if (details.length === 0 && !replaced) return;
  const place = {
    organisation_id: organisationId,
    id,
    platform_id: entry.platform,
    is_default: isDefault ? 1 : 0,
    // An absent setting keeps its stored value.
    ...(entry.idle_seconds !== undefined && { idle_ms: entry.idle_seconds * 1000 }),
    ...(entry.wait_seconds !== undefined && { wait_ms: entry.wait_seconds * 1000 }),
  } as const;
  addStep(planning, { action: known ? 'update' : 'create', kind: 'connection', name, details }, async (db, made) => {
    if (known && !replaced && !moves) return await changeConnection(db, { ...place, secret_reference: reference });
    // The tokens may have been refreshed since the plan, which does not invalidate the plan.
    const before = known && (await lockConnection(db, organisationId, id));
    if (before && moves) {
      const { people, appTokens } = await endForConnection(db, organisationId, id, now);
      endTokensOf(planning, before, made, { removed: { people }, appTokens });
    } else if (before) {
      const appTokens = await deleteUpstreamTokens(db, { organisationId, connectionId: id });
      endTokensOf(planning, before, made, { removed: false, appTokens });
    }
    const credential = replaced ? secret.reveal() : before && keptSecret(planning, before);
    await putConnection(db, {
      ...place,
      label: name,
      // A new credential has not been refused yet, nor has the old one by another platform.
      status: 'active',
      credential: credential === undefined ? null : vault.seal(placeOf(planning, id), credential),
      secret_reference: reference,
      upstream_scopes: null,
      revision: (before?.revision ?? 0) + (replaced ? 1 : 0),
      created_at: before?.created_at ?? now,
      ...(before && replaced && { credential_replaced_at: now }),
    });
  });
}

/** What happens to the stored credential of a connection that moves to another platform, or whose credential is `replaced`. */
function whatBecomesOf({ credential, oauth }: ConnectionTable, replaced: boolean, platform: string): string[] {
  if (!credential) return [];
  if (oauth !== null) return ['its OAuth tokens end, and are revoked'];
  return replaced ? [] : [`its stored secret is kept, and sent to ${platform} from then on`];
}

/** Warns of a secret that stays stored although the credential of its platform has another form from now on. */
function warnOfUnfit(planning: Planning, name: string, entry: ConnectionEntry, known: ConnectionTable): void {
  const before = planning.present.platforms.get(known.platform_id)?.auth;
  const auth = manifestOf(planning, entry.platform)?.auth;
  // Only who may read whether secrets are right learns whether this one is.
  if (entry.secret || !planning.comparesSecrets || before?.type === auth?.type) return;
  const kept = keptSecret(planning, known);
  const wrong = kept === undefined ? undefined : whyNotCredential(auth, new Secret(kept));
  if (wrong === undefined) return;
  const message = `the stored secret ${wrong}: give the connection another one. Until then calls on it are answered platform_reauth_needed.`;
  planning.warnings.push({ path: ['connections', name], message });
}

const placeOf = ({ organisationId }: Planning, id: string) =>
  ({ table: 'connections', organisationId, rowId: id }) as const;

/**
 * Returns the secret that a connection keeps when it moves to another platform. It is sealed again, which makes replicas drop tokens that they
 * obtained with it. Undefined: no secret, or tokens of an authorization server, which are useless for another platform.
 */
function keptSecret(planning: Planning, { id, oauth, credential }: ConnectionTable): string | undefined {
  if (oauth !== null || !credential) return undefined;
  try {
    return planning.vault.open(placeOf(planning, id), credential).toString('utf8');
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}

const inSeconds = (ms: number | null | undefined): number | undefined => (ms == null ? undefined : ms / 1000);

function whyUnusable({ governance, present }: Planning, platform: string): string {
  const type = manifestOf({ governance, present }, platform)?.auth.type;
  if (type === 'app')
    return 'has no App installation yet, so calls on it are answered platform_not_connected: write installation_id into the auth of its platform, or give it the number as its secret.';
  return type === 'oauth2'
    ? 'is not connected yet: an admin does that in the console, under Connections. Until then calls on it are answered platform_not_connected.'
    : 'has no secret yet, so calls on it are answered platform_not_connected.';
}

function manifestOf({ governance, present }: Pick<Planning, 'governance' | 'present'>, platform: string) {
  return governance.manifests.get(platform) ?? present.platforms.get(platform);
}

function givenBy(planning: Planning, { platform }: ConnectionEntry): Secret | undefined {
  const manifest = manifestOf(planning, platform);
  return manifest && credentialOf(manifest);
}

/** Returns the secret of a connection. For a connection to an App that is the number of the installation, which the platform may name for all of them. */
function secretOf(
  planning: Planning,
  name: string,
  entry: ConnectionEntry,
  known: ConnectionTable | undefined,
): Secret | undefined {
  if (!entry.secret) return hasOwnInstallation(planning, entry, known) ? undefined : givenBy(planning, entry);
  const secret = secretIn(planning.resolved, entry.secret);
  if (!secret) {
    const isStored = known?.credential != null && known.secret_reference === secretKey(entry.secret);
    leaveOut(planning, ['connections', name, 'secret'], missingIn(planning.resolved, entry.secret), isStored);
    return undefined;
  }
  const wrong = whyNotCredential(manifestOf(planning, entry.platform)?.auth, secret);
  if (wrong === undefined) return secret;
  const what = isInParts(entry.secret) ? 'the secret' : `the value of ${secretKey(entry.secret)}`;
  const message = `${what} ${wrong}.`;
  addProblem(planning, ['connections', name, 'secret'], message);
  return undefined;
}

/** Whether an owner gave the connection another installation of the App than its platform names: it stays, as every secret that no file names. */
function hasOwnInstallation(planning: Planning, entry: ConnectionEntry, known?: ConnectionTable): boolean {
  const before = planning.present.platforms.get(entry.platform);
  if (known?.platform_id !== entry.platform || known.secret_reference !== null || before?.auth.type !== 'app')
    return false;
  const stored = keptSecret(planning, known);
  return stored !== undefined && !credentialOf(before)?.equals(stored);
}

/** Whether the stored credential equals this secret. One that cannot be opened counts as different, and is replaced. */
function holds(planning: Planning, known: ConnectionTable | undefined, secret: Secret, name: string): boolean {
  if (!known?.credential) return false;
  const held = holdsSecret(planning.vault, placeOf(planning, known.id), known.credential, secret);
  if (held !== 'unreadable') return held;
  const message = 'the stored secret cannot be opened and is replaced by the one given here.';
  planning.warnings.push({ path: ['connections', name, 'secret'], message });
  return false;
}

/** Runs after the grants: a connection is removed, or moved to another platform, only when no grant of a live agent uses it. */
export function planConnectionRemovals(planning: Planning): void {
  const { present, organisationId, now } = planning;
  const { connections } = planning.governance.document;
  if (connections === undefined) return;
  for (const connection of present.connections) {
    const { id, label, platform_id: platform } = connection;
    const entry = Object.hasOwn(connections, label) ? connections[label] : undefined;
    if (entry?.platform === platform) continue;
    const used = planning.futureGrants.filter(
      (grant) => grant.live && grant.connectionId === id && grant.platformId !== entry?.platform,
    );
    if (used.length > 0) {
      const agents = listNames(new Set(used.map((grant) => grant.agent)));
      const why = entry ? `is one to "${platform}", and` : `"${label}" is no longer listed but`;
      addProblem(
        planning,
        entry ? ['connections', label, 'platform'] : ['connections'],
        `${why} grants of ${agents} use it; change them first.`,
      );
    }
    if (entry) continue;
    const details = [
      `platform: ${platform}`,
      ...(connection.credential ? ['its secret is removed with it'] : []),
      // Warns a person who only renames the connection in the file: everybody would have to consent again.
      ...(present.platforms.get(platform)?.per_person ? ['tokens of people for it end, and are revoked'] : []),
    ];
    addStep(planning, { action: 'delete', kind: 'connection', name: label, details }, async (db, made) => {
      const before = await lockConnection(db, organisationId, id);
      if (!before) return;
      const { people, appTokens } = await deleteConnection(db, organisationId, id, now);
      endTokensOf(planning, before, made, { removed: { people }, appTokens });
    });
  }
}

/** Notes that the connection's tokens are to be revoked at the authorization server, or the App's tokens, after the transaction. */
function endTokensOf(
  { present }: Planning,
  connection: ConnectionTable,
  { former }: Made,
  ended: Pick<FormerConnection, 'removed' | 'appTokens'>,
): void {
  const manifest = present.platforms.get(connection.platform_id);
  if (manifest) former.push({ connection, manifest, ...ended });
}
