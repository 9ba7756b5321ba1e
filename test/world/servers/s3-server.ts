/** A small S3 on loopback: accepts objects with a valid signature for the bucket, and keeps them in memory. */
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { type AwsKey, awsProblem } from '../../signing/aws-verifier.ts';
import { listenOnLoopback } from '../listen.ts';

export type S3Server = {
  url: string;
  address: string;
  /** Bodies by path, `/bucket/key`. */
  objects: Map<string, Buffer>;
  /** Each stored path, repeated for each PUT. */
  puts: string[];
  /** Answers this status instead of storing an object. */
  failing: number | undefined;
  /** Returns the lines of an object of gzipped JSON lines. */
  lines(path: string): string[];
};

/** Starts the server; it ends with the test file. */
export async function startS3Server(key: AwsKey, region: string): Promise<S3Server> {
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    const { method = '', url: target = '', headers } = request;
    const problem = awsProblem({ method, target, headers, body }, key, { region, service: 's3', now: Date.now() });
    if (problem !== undefined || method !== 'PUT') return response.writeHead(403).end(problem);
    if (s3.failing !== undefined) return response.writeHead(s3.failing).end();
    s3.puts.push(target);
    s3.objects.set(target, body);
    return response.writeHead(200).end();
  });
  const port = await listenOnLoopback(server);
  const s3: S3Server = {
    url: `http://127.0.0.1:${port}`,
    address: `127.0.0.1:${port}`,
    objects: new Map(),
    puts: [],
    failing: undefined,
    lines: (path) => gunzipSync(s3.objects.get(path)!).toString('utf8').split('\n').filter(Boolean),
  };
  return s3;
}
