/** A strict witness that speaks tlog-witness: what it co-signs, and what happens when it is unavailable or has seen a larger tree. */
import { createHash, generateKeyPairSync, sign, verify } from 'node:crypto';
import { createServer } from 'node:http';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { newOrigin } from '../../broker/receipt-log/log-keys.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { isConsistent } from '../world/rfc9162.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh, givenWorld, READ } from '../world/world.ts';

const NAME = 'witness.example/w1';

type Seen = { size: number; root: Buffer };

/** Starts a witness that verifies everything that C2SP tlog-witness requires, except for the log's signature: only the tests have its key. */
async function startWitness() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const material = Buffer.concat([Buffer.from([4]), publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)]);
  const id = createHash('sha256').update(`${NAME}\n`).update(material).digest().subarray(0, 4);
  const logs = new Map<string, Seen>();
  const answers: number[] = [];
  const state = { isAway: false, isForging: false };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const answer = (status: number, text = '', type = 'text/plain') => {
      answers.push(status);
      response.writeHead(status, { 'content-type': type }).end(text);
    };
    if (state.isAway) return answer(503);
    const [head = '', ...rest] = body.split('\n\n');
    const [oldLine = '', ...proof] = head.split('\n');
    const note = rest.join('\n\n');
    const old = Number(/^old (\d+)$/.exec(oldLine)![1]);
    const text = note.slice(0, note.indexOf('\n\n') + 1);
    const [origin = '', size = '', root = ''] = text.split('\n');
    const before = logs.get(origin);
    if (old !== (before?.size ?? 0)) return answer(409, `${before?.size ?? 0}\n`, 'text/x.tlog.size');
    const now = { size: Number(size), root: Buffer.from(root, 'base64') };
    const hashes = proof.map((line) => Buffer.from(line, 'base64'));
    const follows = before ? isConsistent(before.size, now.size, before.root, now.root, hashes) : hashes.length === 0;
    if (!follows) return answer(422);
    logs.set(origin, now);
    const time = Buffer.alloc(8);
    time.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 1000)));
    const told = state.isForging ? `${text}another tree` : text;
    const signed = sign(null, Buffer.from(`cosignature/v1\ntime ${time.readBigUInt64BE()}\n${told}`), privateKey);
    answer(200, `— ${NAME} ${Buffer.concat([id, time, signed]).toString('base64')}\n`);
  });
  const port = await listenOnLoopback(server);
  afterFile(async () => void server.close());
  const address = `127.0.0.1:${port}`;
  const cosigned = (note: string): boolean => {
    const line = note.split('\n').find((one) => one.startsWith(`— ${NAME} `));
    if (line === undefined) return false;
    const bytes = Buffer.from(line.split(' ')[2]!, 'base64');
    const text = note.slice(0, note.indexOf('\n\n') + 1);
    const message = `cosignature/v1\ntime ${bytes.readBigUInt64BE(4)}\n${text}`;
    return verify(null, Buffer.from(message), publicKey, bytes.subarray(12));
  };
  return {
    vkey: `${NAME}+${id.toString('hex')}+${material.toString('base64')}`,
    address,
    logs,
    answers,
    state,
    cosigned,
  };
}

describe.each(ONE_STORE)(`witnesses of the receipt log on %s${postgresNote}`, (store) => {
  let witness: Awaited<ReturnType<typeof startWitness>>;
  beforeAll(async () => {
    witness = await startWitness();
  });
  const world = givenWorld(store, () => ({
    LOG_WITNESSES: `${witness.vkey} http://${witness.address}/`,
    AGENT_BROKER_ALLOW_PRIVATE: witness.address,
  }));
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent());
  const checkpoint = async () => {
    const headers = { authorization: `Bearer ${mintOwnerSession(world.running.broker, organisation.owner).token}` };
    const answer = await fetch(`${world.running.baseUrl}/orgs/${organisation.id}/checkpoint`, { headers });
    return answer.status === 200 ? await answer.text() : '';
  };
  const sizeOf = (note: string) => Number(note.split('\n')[1] ?? 0);
  const cosignedAbove = (size: number) =>
    expect
      .poll(
        async () => {
          const note = await checkpoint();
          return sizeOf(note) > size && witness.cosigned(note);
        },
        // A log is signed every 5 s.
        { timeout: 30_000, interval: 500 },
      )
      .toBe(true);

  test('co-sign each checkpoint as an extension of the previous one, also after a restart', async () => {
    await agent.act(READ);
    await cosignedAbove(0);
    const first = sizeOf(await checkpoint());
    for (let at = 0; at < 5; at++) await agent.act(READ);
    await cosignedAbove(first);
    const second = sizeOf(await checkpoint());
    await world.restart();
    await agent.act(READ);
    await cosignedAbove(second);
    expect(witness.answers).toContain(409);
    expect(witness.answers).not.toContain(422);
  }, 270_000);

  test('that are unavailable do not delay the log, and sign a later checkpoint', async () => {
    witness.state.isAway = true;
    await agent.act(READ);
    await expect.poll(async () => sizeOf(await checkpoint()), { timeout: 30_000, interval: 500 }).toBeGreaterThan(0);
    const size = sizeOf(await checkpoint());
    await expect.poll(() => witness.answers).toContain(503);
    witness.state.isAway = false;
    await agent.act(READ);
    await cosignedAbove(size);
  }, 180_000);

  test('that have signed a larger tree are reported, and sent nothing more of that log', async () => {
    const errors = vi.spyOn(world.running.broker.log, 'error');
    const origin = newOrigin(world.running.baseUrl, organisation.id);
    const larger = { size: 1_000, root: Buffer.alloc(32, 1) };
    witness.logs.set(origin, larger);
    await agent.act(READ);
    const reported = expect.objectContaining({ security: true, origin, seen: 1_000 });
    await expect
      .poll(() => errors.mock.calls, { timeout: 30_000, interval: 250 })
      .toContainEqual([reported, expect.stringContaining('larger tree')]);
    expect(witness.cosigned(await checkpoint())).toBe(false);
    expect([witness.logs.get(origin), witness.answers.includes(422)]).toEqual([larger, false]);
  }, 180_000);

  test('whose signature is of something else: it is not stored', async () => {
    witness.state.isForging = true;
    const answers = witness.answers.length;
    await agent.act(READ);
    await expect.poll(() => witness.answers.slice(answers), { timeout: 30_000, interval: 250 }).toContain(200);
    const size = sizeOf(await checkpoint());
    witness.state.isForging = false;
    await agent.act(READ);
    await cosignedAbove(size);
    const [first] = await world.db
      .selectFrom('log_checkpoints')
      .select('cosignatures')
      .where('organisation_id', '=', organisation.id)
      .orderBy('size')
      .execute();
    expect(first).toEqual({ cosignatures: null });
  }, 180_000);

  test('are not sent checkpoints of a restored store before its review, and are afterwards', async () => {
    await agent.act(READ);
    await cosignedAbove(0);
    const ended = {
      approvals: 0,
      access_requests: 0,
      registrations: 0,
      consents: 0,
      invites: 0,
      standing_approvals: 0,
    };
    const restored = JSON.stringify({ at: Date.now(), madeAt: null, ended, noted: true });
    await world.db.updateTable('organisations').set({ restored }).where('id', '=', organisation.id).execute();
    const [origin = '', size = ''] = (await checkpoint()).split('\n');
    expect((await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 61 })).status).toBe(200);
    await expect
      .poll(async () => sizeOf(await checkpoint()), { timeout: 30_000, interval: 500 })
      .toBeGreaterThan(Number(size));
    // Checkpoints are sent one after the other, so a later one of another log shows that this one was not sent.
    const others = witness.logs.size;
    await (await (await world.demoOrganisation()).agent()).act(READ);
    await expect.poll(() => witness.logs.size, { timeout: 30_000 }).toBeGreaterThan(others);
    expect(witness.logs.get(origin)!.size).toBeLessThanOrEqual(Number(size));
    const { at } = (await organisation.ask('GET', '/owner/restored')).body.restored;
    expect((await organisation.ask('POST', '/owner/restored/end', { restored_at: at })).status).toBe(200);
    await cosignedAbove(Number(size) + 1);
  }, 180_000);
});
