/** Sends requests to /proxy as any client of a platform would. */
import { request } from 'node:http';
import type { Answer, TestAgent } from '../world/agent.ts';

export const JSON_TYPE = 'application/json';

export type Asked = {
  body?: string | Uint8Array;
  headers?: Record<string, string>;
  /** Sends no token. */
  bare?: boolean;
};

/** A client with the token of an agent. Its bodies are JSON unless its headers say otherwise. */
export const rawClient =
  (agentOf: () => TestAgent) =>
  async (method: string, path: string, { body, headers = {}, bare = false }: Asked = {}): Promise<Answer> => {
    const agent = agentOf();
    const sent = {
      ...(!bare && { authorization: `Bearer ${agent.token()}` }),
      ...(body !== undefined && { 'content-type': JSON_TYPE, 'content-length': String(Buffer.byteLength(body)) }),
      ...headers,
    };
    const url = new URL(agent.baseUrl);
    return await new Promise((resolve, reject) => {
      const asking = request({ host: url.hostname, port: url.port, method, path, headers: sent }, async (response) => {
        const chunks: Buffer[] = [];
        try {
          for await (const chunk of response) chunks.push(chunk as Buffer);
        } catch (error) {
          return reject(error);
        }
        const text = Buffer.concat(chunks).toString();
        const got = new Headers();
        for (const [name, values = []] of Object.entries(response.headersDistinct))
          for (const value of values) got.append(name, value);
        resolve({ status: response.statusCode ?? 0, headers: got, body: parsed(text), text });
      });
      asking.on('error', reject);
      asking.end(body);
    });
  };

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
