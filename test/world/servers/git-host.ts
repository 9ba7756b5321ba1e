/** A code host on loopback: Git's own `git http-backend` over bare repositories, behind a small CGI server (RFC 3875). */
import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { listenOnLoopback } from '../listen.ts';
import { newFolder } from '../stores.ts';

/** A request that the code host received. */
export type SeenGit = { method: string; url: string; headers: IncomingMessage['headers'] };

export type GitHost = {
  url: string;
  /** `host:port`. */
  address: string;
  seen: SeenGit[];
  /** The number of open connections. */
  connections(): Promise<number>;
  /** Answers in place of git when set; false, or a promise of it: git answers after all. */
  answer: ((request: IncomingMessage, response: ServerResponse) => unknown) | undefined;
  /** Creates a bare repository `owner/name` with one commit on main. Returns its folder. */
  repository(name: string, options?: { format?: 'sha1' | 'sha256'; files?: Record<string, string> }): string;
};

/** An environment without this machine's git configuration. */
export const GIT_ENVIRONMENT = {
  PATH: process.env.PATH ?? '',
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@acme.example',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@acme.example',
  LC_ALL: 'C',
};

/** Runs git on local data synchronously, and returns its output. The broker in this process cannot answer meanwhile. */
export const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', args, {
    cwd: folder,
    env: GIT_ENVIRONMENT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 30_000,
  });

/** `secret`: the token that it requires as the Basic password, by `user`; or `takes`: whether it accepts a password for a request. */
export async function startGitHost({
  secret,
  user = 'x-access-token',
  takes = (password) => password === secret,
}: {
  secret?: string;
  user?: string;
  takes?: (password: string, request: IncomingMessage) => boolean;
}): Promise<GitHost> {
  const root = newFolder();
  const passwordOf = ({ headers: { authorization = '' } }: IncomingMessage) => {
    const pair = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString();
    return pair.startsWith(`${user}:`) ? pair.slice(user.length + 1) : '';
  };
  const server = createServer(async (request, response) => {
    host.seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers });
    if (host.answer && (await host.answer(request, response)) !== false) return;
    if (!takes(passwordOf(request), request)) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="host"' }).end('no');
      return;
    }
    runBackend(root, request, response);
  });
  const address = `127.0.0.1:${await listenOnLoopback(server)}`;
  const host: GitHost = {
    url: `http://${address}`,
    address,
    seen: [],
    answer: undefined,
    connections: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
    repository: (name, { format = 'sha1', files = { 'README.md': `# ${name}\n` } } = {}) => {
      const folder = join(root, `${name}.git`);
      git(root, 'init', '-q', '--bare', '-b', 'main', '--template=', `--object-format=${format}`, folder);
      appendFileSync(join(folder, 'config'), BARE);
      const import_ = [
        'commit refs/heads/main\ncommitter A <a@acme.example> now\ndata 5\nfirst\n',
        ...Object.entries(files).map(
          ([path, text]) => `M 644 inline ${path}\ndata ${Buffer.byteLength(text)}\n${text}\n`,
        ),
      ].join('');
      execFileSync('git', ['fast-import', '--quiet', '--date-format=now'], {
        cwd: folder,
        env: GIT_ENVIRONMENT,
        input: import_,
      });
      return folder;
    },
  };
  return host;
}

/** The configuration of a repository on the code host. */
const BARE = `
[http]
	receivepack = true
[uploadpack]
	allowFilter = true
	allowAnySHA1InWant = true
[receive]
	advertisePushOptions = true
`;

function runBackend(root: string, request: IncomingMessage, response: ServerResponse): void {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const { headers } = request;
  const child = spawn('git', ['http-backend'], {
    env: {
      ...GIT_ENVIRONMENT,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: path,
      QUERY_STRING: query,
      REQUEST_METHOD: request.method ?? '',
      CONTENT_TYPE: headers['content-type'] ?? '',
      REMOTE_USER: 'agent',
      ...(headers['content-length'] !== undefined && { CONTENT_LENGTH: headers['content-length'] }),
      ...(headers['content-encoding'] !== undefined && { HTTP_CONTENT_ENCODING: headers['content-encoding'] }),
      ...(typeof headers['git-protocol'] === 'string' && { GIT_PROTOCOL: headers['git-protocol'] }),
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  child.stdin.on('error', () => {});
  request.pipe(child.stdin);
  response.on('close', () => child.kill());
  let head: Buffer | undefined = Buffer.alloc(0);
  child.stdout.on('data', (piece: Buffer) => {
    if (head === undefined) {
      if (!response.write(piece)) {
        child.stdout.pause();
        response.once('drain', () => child.stdout.resume());
      }
      return;
    }
    head = Buffer.concat([head, piece]);
    const end = head.indexOf('\r\n\r\n');
    if (end === -1) return;
    const fields = head.toString('latin1', 0, end).split('\r\n');
    const rest = head.subarray(end + 4);
    head = undefined;
    for (const field of fields) {
      const [, name = '', value = ''] = /^([^:]+): *(.*)$/.exec(field) ?? [];
      if (name.toLowerCase() === 'status') response.statusCode = Number(value.split(' ')[0]);
      else response.setHeader(name, value);
    }
    response.write(rest);
  });
  child.stdout.on('end', () => response.end());
}
