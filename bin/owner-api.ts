/** The owner API as commands ask it, with the types of the schemas that its routes declare. */
import type { Answer, Body, Method, Path } from '../broker/console/answers.ts';
import { type BrokerConnection, type ConnectionOptions, connectAsOwner } from './connection.ts';

export type OwnerApi = {
  /** Address of the broker, without a trailing slash. */
  url: string;
  /** The same without types. */
  broker: BrokerConnection;
  /** As `BrokerConnection.ask`. */
  ask<M extends Method, P extends Path<M>>(
    method: M,
    path: P,
    body?: Body<M, P>,
    signal?: AbortSignal,
  ): Promise<Answer<M, P>>;
};

/** As an owner: see `connectAsOwner`. */
export async function openOwnerApi(options: ConnectionOptions): Promise<OwnerApi> {
  const broker = await connectAsOwner(options);
  return {
    url: broker.url,
    broker,
    ask: async (method, path, body, signal) => (await broker.ask(method, path, body, signal)) as never,
  };
}

/**
 * A list that comes in pages, to its last one. `read` takes the cursor of the page before, and answers the items and the next
 * cursor; null: it was the last.
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
