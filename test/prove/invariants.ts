/** Invariants after every kill, whatever was running: of rows, receipts, approvals, the receipt log and the platform's requests. */
import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { approvedBefore } from '../../broker/audit/approval-state.ts';
import { RECEIPT_TYPE, receiptOf, rowHash } from '../../broker/audit/receipt.ts';
import { verifyLogExport } from '../../broker/console/static/verify/log-export.js';
import { readVerifierKeys } from '../../broker/console/static/verify/note.js';
import { verifyCompact } from '../../broker/crypto/jws.ts';
import type { AuditRow } from '../../broker/store/audit.ts';
import type { ApprovalTable } from '../../broker/store/tables/approvals.ts';
import type { Answer } from '../world/agent.ts';
import { placesOf } from '../world/store-contents.ts';
import { CANARY } from '../world/world.ts';
import { pause, type Scene } from './scene.ts';

const MAX_RECOVERY_MS = 30_000;
/** Twice the time for which a dead process keeps a lease. */
const MAX_LEASE_MS = 8_000;
const digest = (bytes: Uint8Array) => hash('sha256', bytes, 'buffer');

/** An answer to a call, as received by the client. */
export type Given = { item: string; answer: Answer };

export type Invariants = {
  /** Records the answer to a call. The last part of the call's path is unique. */
  answered(item: string, answer: Answer): void;
  /** Throws when an invariant does not hold. To be called when a broker serves again and no call is in flight. */
  check(): Promise<void>;
  /** Checks what takes longer: the leases, the whole log under a checkpoint, and no secret in the store. */
  checkAll(): Promise<void>;
};

/** Returns the unique name of a call: the last part of its path. */
export const itemOf = (path: string | null): string | undefined => /\/items\/([\w-]+)$/.exec(path ?? '')?.[1];

function fail(invariant: string, what: string): never {
  throw new Error(`${invariant}: ${what}`);
}

/** `losesReads`: unsynced writes are lost, and with them journal entries of reads in flight, as docs/security.md describes. */
export function startInvariants(
  { reader, ledger, world, organisation, baseUrl, ask, output }: Scene,
  { losesReads = false } = {},
): Invariants {
  const verified = new Set<string>();
  const lost = new Set<string>();
  const answers: Given[] = [];
  const checkpoints: string[] = [];

  const recovered = async (): Promise<void> => {
    const began = performance.now();
    const open = `select (select count(*) from approvals where exec_state in ('claimed', 'intent')) +
      (select count(*) from audit_rows where state = 'intent') +
      (select count(*) from idempotency_keys where instance_id is not null and instance_id not in (select id from instances)) as count`;
    for (;;) {
      const count = Number((await reader.rows(open))[0].count);
      const took = performance.now() - began;
      if (count === 0) return ledger.most('longest recovery, ms', took);
      if (took > MAX_RECOVERY_MS)
        fail('every intent becomes final, and every key of a dead process free', `${count} are open after ${took} ms`);
      await pause(25);
    }
  };

  const isReady = async (): Promise<void> => {
    const began = performance.now();
    for (;;) {
      const { status } = await fetch(`${baseUrl}/readyz`, { signal: AbortSignal.timeout(MAX_RECOVERY_MS) });
      const took = performance.now() - began;
      if (status === 200) break;
      if (took > MAX_RECOVERY_MS) fail('ready again', `/readyz answers ${status}`);
      await pause(25);
    }
    ledger.check('/readyz answers 200 again');
    ledger.most('longest until ready, ms', performance.now() - began);
  };

  const published = async (): Promise<Map<string, KeyObject>> => {
    const { keys } = (await (await fetch(`${baseUrl}/.well-known/svc-receipt-keys.json`)).json()) as {
      keys: { kid: string }[];
    };
    return new Map(keys.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]));
  };

  const checkRows = async (rows: readonly AuditRow[]): Promise<void> => {
    const keys = await published();
    const before = verified.size;
    for (const row of rows) {
      if (row.state !== 'final') fail('every intent becomes final', row.id);
      if (verified.has(row.id)) continue;
      if (row.row_hash !== rowHash(row)) fail('a row is what its hash says', row.id);
      const jws = receiptOf(row);
      // A change by an owner that is in the log but has no receipt.
      if (jws === null && row.kind === 'event' && row.agent_id === null) continue;
      const receipt = verifyCompact(jws ?? '', keys, { typ: RECEIPT_TYPE });
      if (!receipt.ok) fail('every receipt verifies', `${row.id}: ${receipt.detail}`);
      const { jti, row_hash } = receipt.payload as { jti?: unknown; row_hash?: unknown };
      if (jti !== row.id || row_hash !== row.row_hash) fail('a receipt says what is stored', row.id);
      if (row.reason === 'outcome_unknown') ledger.find('calls closed as outcome_unknown');
      verified.add(row.id);
    }
    ledger.check('each row is final, and its receipt verifies', verified.size - before);
  };

  /** Invariants I1 and I2. */
  const checkPlatform = (rows: readonly AuditRow[]): void => {
    const seen = new Map<string, number>();
    const reads = new Set<string>();
    for (const { method, target } of world.upstream.seen) {
      const item = itemOf(target.split('?')[0]!);
      if (item === undefined) continue;
      seen.set(item, (seen.get(item) ?? 0) + 1);
      if (method === 'GET') reads.add(item);
    }
    const byItem = Map.groupBy(rows, (row) => itemOf(row.path));
    for (const [item, times] of seen) {
      if (times > 1) fail('no call is sent twice', `${item} ${times} times`);
      if (byItem.get(item)?.some((row) => row.result !== 'denied')) continue;
      // A lost read must not have been answered, which is checked with the answers.
      if (!losesReads || !reads.has(item)) fail('what was sent is on record', item);
      lost.add(item);
    }
    for (const [item, found] of byItem) {
      const made = found.filter((row) => row.kind === 'action' && row.result === 'allowed').length;
      if (item !== undefined && made > (seen.get(item) ?? 0)) fail('what is on record as made was sent', item);
    }
    if (losesReads) ledger.most('most reads in flight without an audit row', lost.size);
    ledger.check('a call that the platform received was sent once, and has an audit row', seen.size - lost.size);
  };

  /** Every answer has its audit row, with the same result. */
  const checkAnswers = (rows: readonly AuditRow[]): void => {
    const byId = new Map(rows.map((row) => [row.id, row]));
    const results: Record<number, string> = { 200: 'allowed', 202: 'held', 403: 'denied' };
    for (const { item, answer } of answers.splice(0)) {
      const { status, body, headers } = answer;
      const id = body?._meta?.audit_id ?? body?.audit_id ?? headers.get('x-svc-audit-id') ?? undefined;
      // The call could not be recorded, and the answer says so: it was not made, or the outcome is unknown.
      if (status === 503 && id === undefined && /^(store|audit)_unavailable$/.test(body?.error)) {
        ledger.find(`answers of 503 ${body.error}`);
        continue;
      }
      const row = byId.get(id);
      if (!row) fail('each answer has its row', `${item} ${status} ${answer.text}`);
      if (status in results && row.result !== results[status])
        fail('a row says what was answered', `${item} ${status} ${row.result}`);
      ledger.check('a response has an audit row with the same outcome');
    }
  };

  const checkApprovals = (rows: readonly AuditRow[], approvals: readonly ApprovalTable[]): void => {
    const seen = Map.groupBy(world.upstream.seen, ({ target }) => itemOf(target));
    const own = Map.groupBy(rows, (row) => row.approval_id);
    for (const one of approvals) {
      const where = `${one.id} ${one.status} ${one.exec_state} ${one.execution_error}`;
      const times = seen.get(itemOf(one.path))?.length ?? 0;
      const mine = own.get(one.id) ?? [];
      const decisions = mine.filter((row) => row.kind === 'event' && /^approval_(approved|denied)$/.test(row.reason));
      const isDecided = one.status === 'approved' || one.status === 'denied';
      const said = decisions.map(({ id, reason }) => `${id} ${reason}`).join();
      if (said !== (isDecided ? `${one.decision_audit_id} approval_${one.status}` : ''))
        fail('one decision, on record', `${where}: ${said}`);
      const given = approvedBefore(one);
      const people = new Set([...given.map((each) => each.decided_by), one.decided_by]);
      const rowsOfGiven = mine.filter((row) => row.reason === 'approval_given').map(({ id }) => id);
      // Nobody is removed and nothing is corrected here, so that each approval counts.
      if (
        rowsOfGiven.toSorted().join() !==
        given
          .map((each) => each.audit_id)
          .toSorted()
          .join()
      )
        fail('each approval is on record', `${where}: ${rowsOfGiven}`);
      if (one.status === 'approved' && people.size < (one.approvers ?? 1))
        fail('as many people approve as the rules require', `${where}: ${[...people]}`);
      if (one.status === 'approved' && given.length > 0)
        ledger.check('a call that two people have to approve was approved by two');
      const replay = mine.find((row) => row.id === one.replay_audit_id);
      const legal: Record<string, boolean> = {
        none: one.status !== 'approved' && times === 0,
        done: one.status === 'approved' && times === 1 && replay?.result === 'allowed',
        failed: one.status === 'approved' && times === 0,
        unknown: one.status === 'approved' && times <= 1 && replay?.result === 'errored',
      };
      if (!legal[one.exec_state]) fail('approvals are in a legal state', `${where}, seen ${times} times`);
      if (mine.filter((row) => row.kind === 'action' && row.result === 'allowed').length > 1)
        fail('an approval executes once', where);
    }
    ledger.check('an approval is in a legal state, and was executed at most once', approvals.length);
  };

  const text = async (path: string) => await (await fetch(baseUrl + path)).text();

  /** The log extends every earlier checkpoint. Returns how many rows it covers. */
  const checkLog = async (): Promise<number> => {
    const exported = await ask('GET', '/owner/log/export');
    if (exported.status !== 200) fail('the receipt log is exported', exported.text);
    const lines = exported.text.trim().split('\n');
    const { checkpoint } = JSON.parse(lines[0]!);
    // Before the first checkpoint the log is not published.
    if (checkpoint === null && checkpoints.length === 0) return 0;
    const keys = await readVerifierKeys(await text(`/.well-known/svc-log/${organisation.id}`));
    const { keys: receiptKeys } = JSON.parse(await text('/.well-known/svc-receipt-keys.json'));
    const verdict = await verifyLogExport(lines, { keys, checkpoints, receiptKeys, digest });
    if (!verdict.ok) fail('the receipt log verifies', JSON.stringify(verdict.problems));
    if (checkpoint !== null && checkpoints.at(-1) !== checkpoint) checkpoints.push(checkpoint);
    ledger.check('the receipt log verifies, also from the checkpoints stored earlier');
    return verdict.size;
  };

  const check = async (): Promise<void> => {
    await isReady();
    await recovered();
    const rows: AuditRow[] = await reader.rows('select * from audit_rows');
    await checkRows(rows);
    checkPlatform(rows);
    checkAnswers(rows);
    checkApprovals(rows, await reader.rows('select * from approvals'));
    await checkLog();
  };

  const isLogWhole = async (): Promise<void> => {
    const began = performance.now();
    for (;;) {
      const size = await checkLog();
      const [{ count }] = await reader.rows(
        `select count(*) as count from audit_rows where organisation_id = '${organisation.id}'`,
      );
      if (size === Number(count)) return ledger.check('the log covers every row, each once');
      if (performance.now() - began > MAX_RECOVERY_MS) fail('the log covers every row', `${size} of ${count}`);
      await pause(500);
    }
  };

  const isSequenced = async (): Promise<void> => {
    const [before] = await reader.rows(`select * from leases where name = 'receipt log'`);
    const began = performance.now();
    const moved = (now: { until: number; fence: number }) =>
      world.environment.DATABASE_URL === undefined ? now.fence > 0 : now.until > (before?.until ?? 0);
    for (;;) {
      const [now] = await reader.rows(`select * from leases where name = 'receipt log'`);
      if (now !== undefined && moved(now)) break;
      if (performance.now() - began > MAX_LEASE_MS) fail('leases are taken over', JSON.stringify(now));
      await pause(100);
    }
    ledger.check('the lease of a dead process is taken over');
  };

  return {
    answered: (item, answer) => void answers.push({ item, answer }),
    check,
    checkAll: async () => {
      await check();
      await isSequenced();
      await isLogWhole();
      const stored = await reader.everything();
      stored.set('output', Buffer.from(output()));
      const places = placesOf(CANARY, stored);
      if (places.length > 0) fail('no secret is in the clear', places.join());
      ledger.check('no credential in the clear in the store, the data folder or the output');
    },
  };
}
