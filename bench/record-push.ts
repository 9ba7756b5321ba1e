/** Records the request with which this machine's git pushes one commit with a file of 10 KB, for replay by the bench. */
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ZERO = '0'.repeat(40);
const line = (text: string): string => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;

/** Returns the body of the POST; undefined when git is not installed. */
export async function recordPush(): Promise<Buffer | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-bench-push-'));
  const git = (...words: string[]) => execFileSync('git', words, { cwd: folder, env: ENVIRONMENT, stdio: 'pipe' });
  let body: Buffer | undefined;
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const isPush = request.method === 'POST';
    if (isPush) body = Buffer.concat(pieces);
    const what = isPush ? 'result' : 'advertisement';
    response.writeHead(200, { 'content-type': `application/x-git-receive-pack-${what}` });
    const none = `${line('# service=git-receive-pack\n')}0000${line(`${ZERO} capabilities^{}\0report-status\n`)}0000`;
    response.end(isPush ? `${line('unpack ok\n')}${line('ok refs/heads/agent/bench\n')}0000` : none);
  });
  try {
    git('init', '-q');
    writeFileSync(join(folder, 'file'), randomBytes(10_000));
    git('add', 'file');
    git('-c', 'user.name=bench', '-c', 'user.email=bench@acme.example', 'commit', '-qm', 'bench');
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const words = ['push', '-q', `http://127.0.0.1:${port}/acme/app.git`, 'HEAD:refs/heads/agent/bench'];
    const [code] = await once(spawn('git', words, { cwd: folder, env: ENVIRONMENT, stdio: 'ignore' }), 'close');
    return code === 0 ? body : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  } finally {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The environment of git, without the git settings of the user. */
const ENVIRONMENT = {
  PATH: process.env.PATH,
  HOME: tmpdir(),
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};
