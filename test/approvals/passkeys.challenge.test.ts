/** What a passkey challenge is valid for, and for how long (specification, Passkey challenges). */
import { describe, expect, test } from 'vitest';
import {
  CHALLENGE_LIFETIME_MS,
  type ChallengeSubject,
  issueChallenge,
  judgeChallenge,
  subjectOf,
} from '../../broker/approvals/passkeys/challenge.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { generateMasterKey } from '../../broker/crypto/master-key.ts';
import { makeVault } from '../../broker/vault.ts';

const HASH = 'a'.repeat(64);

function process(master = generateMasterKey().key, runId = uuidv4()) {
  const time = { now: Date.now() };
  const vault = makeVault({ current: master, previous: [] });
  const fleetRun = { startedAt: 0, settled: async () => {}, read: async () => ({ id: runId }) };
  const keyed = { vault, fleetRun, clock: () => time.now };
  return { time, vault, keyed, master, runId };
}

const signing = (id = uuidv4(), requestHash = HASH): ChallengeSubject => ({ purpose: 'sign', id, requestHash });

describe('a passkey challenge', () => {
  test('is valid for its subject only, for 5 minutes', async () => {
    for (const subject of [signing(), { purpose: 'register', id: uuidv4() } as const]) {
      const { keyed, time } = process();
      const challenge = (await issueChallenge(keyed, subject)).toString('base64url');
      expect(subjectOf(challenge)).toEqual({ purpose: subject.purpose, id: subject.id });
      expect(await judgeChallenge(keyed, challenge, subject)).toBe('good');
      expect(await judgeChallenge(keyed, challenge, subject)).toBe('good');
      time.now += CHALLENGE_LIFETIME_MS - 1;
      expect(await judgeChallenge(keyed, challenge, subject)).toBe('good');
      time.now += 1;
      expect(await judgeChallenge(keyed, challenge, subject)).toBe('expired');
    }
    expect(CHALLENGE_LIFETIME_MS).toBe(300_000);
  });

  test('is refused for any other purpose, owner, approval or request', async () => {
    const { keyed } = process();
    const subject = signing();
    const challenge = (await issueChallenge(keyed, subject)).toString('base64url');
    for (const other of [
      signing(subject.id, 'b'.repeat(64)),
      signing(subject.id, ''),
      signing(),
      { purpose: 'register', id: subject.id } as const,
    ])
      expect(await judgeChallenge(keyed, challenge, other)).toBe('foreign');
    const enrolment = { purpose: 'register', id: uuidv4() } as const;
    const forEnrolment = (await issueChallenge(keyed, enrolment)).toString('base64url');
    expect(await judgeChallenge(keyed, forEnrolment, { ...enrolment, id: uuidv4() })).toBe('foreign');
    expect(await judgeChallenge(keyed, forEnrolment, signing(enrolment.id))).toBe('foreign');
  });

  test('two challenges for one subject differ, and issuing one does not invalidate the other', async () => {
    const { keyed } = process();
    const subject = signing();
    const made = (await Promise.all(Array.from({ length: 100 }, () => issueChallenge(keyed, subject)))).map(
      (challenge) => challenge.toString('base64url'),
    );
    expect(new Set(made).size).toBe(100);
    for (const challenge of made) expect(await judgeChallenge(keyed, challenge, subject)).toBe('good');
  });

  test('is refused with any bit changed', async () => {
    const { keyed } = process();
    const subject = signing();
    const bytes = await issueChallenge(keyed, subject);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      const challenge = changed.toString('base64url');
      expect(await judgeChallenge(keyed, challenge, subject), `bit ${bit}`).not.toBe('good');
      // It is not valid for the subject that its altered bytes name, either.
      const said = subjectOf(challenge);
      if (said)
        expect(await judgeChallenge(keyed, challenge, { ...said, requestHash: HASH } as never)).not.toBe('good');
    }
  });

  test.each([
    ['', 'nothing'],
    ['x', 'one character'],
    ['A'.repeat(110), 'zeros'],
    ['A'.repeat(109), 'too short'],
    ['A'.repeat(112), 'too long'],
    ['*'.repeat(110), 'no base64url'],
  ])('%j (%s) is not a challenge', async (text) => {
    const { keyed } = process();
    expect(subjectOf(text)).toBeUndefined();
    expect(await judgeChallenge(keyed, text, signing())).toBe('foreign');
  });

  test('AP-19 a restart invalidates challenges; replicas of the same run accept them', async () => {
    const subject = signing();
    const first = process();
    const challenge = (await issueChallenge(first.keyed, subject)).toString('base64url');
    expect(await judgeChallenge(process(first.master, first.runId).keyed, challenge, subject)).toBe('good');
    expect(await judgeChallenge(process(first.master).keyed, challenge, subject)).toBe('expired');
  });

  test('AP-19 a challenge of the previous run is valid if it was issued since the next run began, and not if earlier', async () => {
    const subject = signing();
    const first = process();
    const at = async (now: number) => {
      first.time.now = now;
      return (await issueChallenge(first.keyed, subject)).toString('base64url');
    };
    const since = Date.now();
    const [before, after] = [await at(since - 1), await at(since)];
    const { keyed } = process(first.master);
    const { id } = await keyed.fleetRun.read();
    const previous = { id: first.runId, since };
    const next = { ...keyed, fleetRun: { ...keyed.fleetRun, read: async () => ({ id, previous }) } };
    expect(await judgeChallenge(next, before, subject)).toBe('expired');
    expect(await judgeChallenge(next, after, subject)).toBe('good');
    const own = (await issueChallenge(next, subject)).toString('base64url');
    expect(await judgeChallenge(next, own, subject)).toBe('good');
  });

  test('AP-19 a challenge from before this process waits until it is known whether its run has ended', async () => {
    const subject = signing();
    const { keyed, time, runId } = process();
    const challenge = (await issueChallenge(keyed, subject)).toString('base64url');
    const judged = async (startedAt: number) => {
      let id = runId;
      const settled = async () => {
        id = uuidv4();
      };
      return await judgeChallenge(
        { ...keyed, fleetRun: { startedAt, settled, read: async () => ({ id }) } },
        challenge,
        subject,
      );
    };
    expect(await judged(time.now)).toBe('good');
    expect(await judged(time.now + 1)).toBe('expired');
  });

  test('KEY-03 after a master key rotation challenges stay valid until the older key is removed', async () => {
    const { keyed, vault, master } = process();
    const subject = signing();
    const before = (await issueChallenge(keyed, subject)).toString('base64url');
    const next = generateMasterKey().key;
    vault.useMasterKeys({ current: next, previous: [master] });
    expect(await judgeChallenge(keyed, before, subject)).toBe('good');
    const after = (await issueChallenge(keyed, subject)).toString('base64url');
    vault.useMasterKeys({ current: next, previous: [] });
    expect(await judgeChallenge(keyed, before, subject)).toBe('expired');
    expect(await judgeChallenge(keyed, after, subject)).toBe('good');
    const stranger = process();
    expect(await judgeChallenge(stranger.keyed, after, subject)).toBe('expired');
  });
});
