/** Requests cosignatures of checkpoints from witnesses (C2SP tlog-witness), in the background: an unavailable witness delays nothing. */
import type { Broker } from '../broker.ts';
import type { Answer } from '../egress/dispatcher.ts';
import { type Outage, watchOutage } from '../outage.ts';
import { addCosignature } from '../store/receipt-logs.ts';
import { findRestored } from '../store/restored.ts';
import { consistencyProof } from './merkle.ts';
import { checkpointNote, cosignatureOf, type NoteKey, readVkey, type TreeHead } from './note.ts';
import { tileReader } from './tree.ts';

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;

/** A tree head with the signature of the log's key. */
export type SignedHead = TreeHead & { organisationId: string; signature: string };

export type Witnesses = {
  /** Requests cosignatures of this head from all witnesses soon; a newer head of the same log replaces one that is waiting. */
  ask(head: SignedHead): void;
  /** Sends no more requests; resolves when none is in flight. */
  stop(): Promise<void>;
};

type Witness = {
  key: NoteKey;
  url: string;
  outage: Outage;
  seen: Map<string, number>;
  waiting: Map<string, SignedHead>;
  work: Promise<void> | undefined;
};

/** Throws when a verifier key in `LOG_WITNESSES` is not one of a witness. */
export function makeWitnesses(
  broker: Pick<Broker, 'config' | 'log' | 'outbound' | 'store' | 'storeOutage'>,
): Witnesses {
  const { config, log, store } = broker;
  const witnesses = config.logWitnesses.map(({ vkey, url }): Witness => {
    const key = keyOf(vkey);
    const about = { witness: key.name };
    const words = {
      failed: 'a witness does not sign checkpoints; asking it again with the next one',
      worked: 'the witness signs checkpoints again',
    };
    return {
      key,
      url,
      seen: new Map(),
      waiting: new Map(),
      work: undefined,
      outage: watchOutage(log, { ...words, about, level: 'warn' }),
    };
  });
  let stopped = false;

  const post = (witness: Witness, body: string): Promise<Answer> =>
    broker.outbound.send({
      url: new URL(`${witness.url}/add-checkpoint`),
      method: 'POST',
      headers: { 'user-agent': 'agent-broker', 'content-type': 'text/plain; charset=utf-8' },
      body,
      connectionKey: `witness ${witness.key.name}`,
      family: witness.key.name,
      publicOnly: false,
      maxResponseBytes: MAX_ANSWER_BYTES,
      idleTimeoutMs: TIMEOUT_MS,
      totalTimeoutMs: TIMEOUT_MS,
    });

  /** Requests one cosignature. Throws an error with the cause. */
  const askOne = async (witness: Witness, head: SignedHead): Promise<void> => {
    const { organisationId, origin, size, signature } = head;
    // A witness keeps its own record of the tree size it has seen, and reports it with 409; the request is then repeated from that size.
    for (let attempt = 0; attempt < 3; attempt++) {
      const old = witness.seen.get(origin) ?? 0;
      if (old > size) {
        log.error(
          { security: true, witness: witness.key.name, origin, size, seen: old },
          'a witness has signed a larger tree of this receipt log than there is',
        );
        return;
      }
      const proof = old === 0 ? [] : await consistencyProof(tileReader(store.db, organisationId), old, size);
      const lines = proof.map((one) => `${Buffer.from(one).toString('base64')}\n`).join('');
      const answer = await post(witness, `old ${old}\n${lines}\n${checkpointNote(head, signature)}`);
      if (answer.kind === 'unreachable') throw new Error(answer.detail);
      const text = answer.body.toString('utf8');
      if (answer.status === 409 && /^\d{1,15}\n$/.test(text)) {
        witness.seen.set(origin, Number(text));
        continue;
      }
      if (answer.status !== 200) throw new Error(`It answered ${answer.status}.`);
      const line = cosignatureOf(head, text, witness.key);
      if (line === undefined)
        throw new Error('The response of the witness has no valid signature for this checkpoint.');
      witness.seen.set(origin, size);
      await addCosignature(store.db, { organisation_id: organisationId, size }, `${line}\n`);
      return;
    }
    throw new Error('The witness reports another tree size at each attempt.');
  };

  const drain = async (witness: Witness): Promise<void> => {
    for (const [origin, head] of witness.waiting) {
      if (stopped) return;
      witness.waiting.delete(origin);
      try {
        // A restored store may be a copy. The review is recorded in the log, so the next checkpoint after it covers it, and is sent then.
        if (await findRestored(store.db, head.organisationId)) continue;
        await askOne(witness, head);
        witness.outage.worked();
      } catch (error) {
        if (!broker.storeOutage.isLasting()) witness.outage.failed(error);
      }
    }
    // In the same turn as the end of the loop, so that no head added in between is left waiting.
    witness.work = undefined;
  };

  return {
    ask: (head) => {
      for (const witness of witnesses) {
        witness.waiting.set(head.origin, head);
        witness.work ??= drain(witness);
      }
    },
    stop: async () => {
      stopped = true;
      await Promise.all(witnesses.map(({ work }) => work));
    },
  };
}

function keyOf(vkey: string): NoteKey {
  let key: NoteKey;
  try {
    key = readVkey(vkey);
  } catch (error) {
    throw new Error(`LOG_WITNESSES: ${vkey} ${(error as Error).message}.`, { cause: error });
  }
  if (!key.isWitness)
    throw new Error(`LOG_WITNESSES: ${vkey} is the key of a log: expected one of a witness, of type 4.`);
  return key;
}
