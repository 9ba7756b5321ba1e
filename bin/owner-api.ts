/** The owner API for commands, with the types of the schemas that its routes declare. */
import type { Answer, Body, Method, Path } from '../broker/console/answers.ts';
import { type BrokerConnection, type ConnectionOptions, connectAsOwner } from './connection.ts';

export type OwnerApi = {
  /** Address of the broker, without a trailing slash. */
  url: string;
  /** The connection without types. */
  broker: BrokerConnection;
  command: BrokerConnection['command'];
  /** Like `BrokerConnection.ask`, with types. */
  ask<M extends Method, P extends Path<M>>(
    method: M,
    path: P,
    body?: Body<M, P>,
    signal?: AbortSignal,
  ): Promise<Answer<M, P>>;
};

/** Connects as an owner: see `connectAsOwner`. */
export async function openOwnerApi(options: ConnectionOptions): Promise<OwnerApi> {
  const broker = await connectAsOwner(options);
  return {
    url: broker.url,
    broker,
    command: broker.command,
    ask: async (method, path, body, signal) => (await broker.ask(method, path, body, signal)) as never,
  };
}

/**
 * Reads all pages of a list. `read` takes the cursor of the previous page, and returns the items and the next cursor; null after
 * the last page.
 */
export async function pagesOf<T>(
  read: (before: string | undefined) => Promise<{ items: readonly T[]; next: string | null }>,
): Promise<T[]> {
  const found: T[] = [];
  for (let before: string | undefined; ; ) {
    const { items, next } = await read(before);
    found.push(...items);
    if (next === null) return found;
    before = next;
  }
}
