/**
 * Passkey challenges (specification, Passkey challenges). They are not stored: a challenge contains its purpose, its expiry and a MAC over both.
 * Requesting another one therefore uses no storage and does not invalidate an owner's earlier challenge.
 *
 * Deciding an approval is idempotent by itself. A challenge that enrolled a passkey is recorded as used (store/used-challenges.ts), because an owner
 * may enrol many passkeys.
 */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Broker } from '../../broker.ts';
import { sha256Hex } from '../../crypto/canonical.ts';
import { deriveKey, type MasterKey } from '../../crypto/master-key.ts';
import { decodeBase64url } from '../../crypto/strict-decoding.ts';
import type { FleetRun } from '../../fleet-run.ts';
import { present } from '../../runtime/present.ts';

/**
 * What a challenge is for: enrolment by an owner; approval of exactly one request by a passkey of its agent's owner (`sign`); signing in by any
 * passkey; adding a passkey, or removing exactly this one, with one that its owner has; a decision on exactly one request, with exactly this note, by
 * a passkey of whoever may decide in the organisation; the same with exactly these terms of a standing approval.
 */
export type ChallengeSubject =
  | { purpose: 'register'; id: string }
  | { purpose: 'sign'; id: string; requestHash: string }
  | { purpose: 'sign-in' | 'add-passkey'; id: typeof UNKNOWN_PERSON }
  | { purpose: 'remove-passkey'; id: string }
  | {
      purpose: 'approve' | 'deny';
      id: string;
      organisationId: string;
      requestHash: string;
      note: string | undefined;
    }
  | {
      purpose: 'standing';
      id: string;
      organisationId: string;
      requestHash: string;
      note: string | undefined;
      /** Hash of the terms that are approved along with this call (standing-request.ts). */
      termsHash: string;
    };

/** Subject of a challenge for signing in, or for adding a passkey: the person is not known yet. */
export const UNKNOWN_PERSON = '00000000-0000-0000-0000-000000000000';

/**
 * `expired`: past its 5 minutes, or made with a former key (restart, rotation). `foreign`: for another purpose,
 * owner, approval or request, or not issued here.
 */
export type ChallengeState = 'good' | 'expired' | 'foreign';

type Keyed = Pick<Broker, 'vault' | 'clock'> & { fleetRun: Pick<FleetRun, 'read' | 'settled' | 'startedAt'> };

export const CHALLENGE_LIFETIME_MS = 5 * 60_000;

/* version 1 | purpose 1 | key id 8 | subject's uuid 16 | end in ms 8 | random 16 | HMAC-SHA-256 32 */
const VERSION = 1;
const PURPOSES = {
  register: 1,
  sign: 2,
  approve: 3,
  deny: 4,
  'sign-in': 5,
  standing: 6,
  'add-passkey': 7,
  'remove-passkey': 8,
} as const;
type Purpose = keyof typeof PURPOSES;
const PURPOSE_NAMES = Object.keys(PURPOSES) as Purpose[];
const KEY_ID = 2;
const SUBJECT = 10;
const ENDS = 26;
const RANDOM = 34;
const MAC = 50;
const LENGTH = 82;

/** Issues a challenge that is valid for 5 minutes. */
export async function issueChallenge(broker: Keyed, subject: ChallengeSubject): Promise<Buffer> {
  const run = await broker.fleetRun.read();
  const { id, secret } = keyOf(run.id, broker.vault.masterKeys().current);
  const head = Buffer.alloc(MAC);
  head[0] = VERSION;
  head[1] = PURPOSES[subject.purpose];
  id.copy(head, KEY_ID);
  uuidBytes(subject.id).copy(head, SUBJECT);
  head.writeBigUInt64BE(BigInt(broker.clock() + CHALLENGE_LIFETIME_MS), ENDS);
  randomBytes(MAC - RANDOM).copy(head, RANDOM);
  return Buffer.concat([head, macOf(secret, head, subject)]);
}

/** Returns the unverified purpose of a challenge (base64url); undefined when it is not in our format. */
export function subjectOf(challenge: string): { purpose: Purpose; id: string } | undefined {
  const bytes = decodeBase64url(challenge);
  if (bytes?.length !== LENGTH || bytes[0] !== VERSION) return undefined;
  const purpose = PURPOSE_NAMES.find((name) => PURPOSES[name] === bytes[1]);
  return purpose && { purpose, id: uuidText(bytes.subarray(SUBJECT, ENDS)) };
}

/**
 * Whether a challenge was issued here for this subject and is valid. For a challenge that is older than this process, waits until it is known whether
 * another process of its run is alive.
 */
export async function judgeChallenge(
  broker: Keyed,
  challenge: string,
  subject: ChallengeSubject,
): Promise<ChallengeState> {
  const said = subjectOf(challenge);
  if (said?.purpose !== subject.purpose || said.id !== subject.id) return 'foreign';
  const bytes = present(decodeBase64url(challenge), 'challenge');
  const keyId = bytes.subarray(KEY_ID, SUBJECT);
  const ends = Number(bytes.readBigUInt64BE(ENDS));
  const issuedAt = ends - CHALLENGE_LIFETIME_MS;
  if (issuedAt < broker.fleetRun.startedAt) await broker.fleetRun.settled();
  const { id: runId, previous: ended } = await broker.fleetRun.read();
  const runs = ended && issuedAt >= ended.since ? [runId, ended.id] : [runId];
  const { current, previous } = broker.vault.masterKeys();
  const key = [current, ...previous]
    .flatMap((master) => runs.map((run) => keyOf(run, master)))
    .find(({ id }) => id.equals(keyId));
  if (!key) return 'expired';
  if (!timingSafeEqual(macOf(key.secret, bytes.subarray(0, MAC), subject), bytes.subarray(MAC))) return 'foreign';
  return ends <= broker.clock() ? 'expired' : 'good';
}

/**
 * The processes of a run share a key, so that any of them can finish a ceremony. The next run has another key: a restart
 * invalidates outstanding challenges (specification).
 */
function keyOf(runId: string, master: MasterKey): { id: Buffer; secret: Buffer } {
  const secret = deriveKey(master, 'passkey challenge', runId);
  return {
    secret,
    id: createHmac('sha256', secret)
      .update('key id')
      .digest()
      .subarray(0, SUBJECT - KEY_ID),
  };
}

/** The head and all parts have fixed lengths, and the head says which parts follow: the concatenation is unambiguous. */
function macOf(secret: Buffer, head: Buffer, subject: ChallengeSubject): Buffer {
  const mac = createHmac('sha256', secret).update(head);
  if ('requestHash' in subject) mac.update(subject.requestHash);
  if ('organisationId' in subject) mac.update(uuidBytes(subject.organisationId)).update(sha256Hex(subject.note ?? ''));
  if ('termsHash' in subject) mac.update(subject.termsHash);
  return mac.digest();
}

const uuidBytes = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex');

function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
