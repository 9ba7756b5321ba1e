/**
 * Fixtures that hooks create and tests use as if they existed from the start:
 *
 *     const world = givenWorld(store);
 *     const organisation = shared(() => world.demoOrganisation());
 *     const agent = fresh(() => organisation.agent());
 *
 * Fixtures of `test.extend` are parameters of each test, which functions beside the tests cannot see; these are in scope for both.
 */
import { beforeAll, beforeEach } from 'vitest';
import type { StoreKind } from './stores.ts';
import { startWorld, type World, type WorldOptions } from './world.ts';

/** Created once, before the tests of this `describe`. */
export function shared<T extends object>(make: () => T | Promise<T>): T {
  let made: T | undefined;
  beforeAll(async () => {
    made = await make();
  });
  return standIn(() => made);
}

/** Created before each test of this `describe`. */
export function fresh<T extends object>(make: () => T | Promise<T>): T {
  let made: T | undefined;
  beforeEach(async () => {
    made = await make();
  });
  return standIn(() => made);
}

/**
 * A broker for the tests of this `describe`. Before each test its clock is reset, and its platform has no requests and the default answer.
 * `environment`: a function where earlier hooks determine its values.
 */
export function givenWorld(
  store: StoreKind = 'sqlite',
  environment: Record<string, string> | (() => Record<string, string>) = {},
  options: WorldOptions = {},
): World {
  const world = shared(() =>
    startWorld(store, typeof environment === 'function' ? environment() : environment, options),
  );
  beforeEach(() => {
    world.clock.skewMs = 0;
    world.upstream.seen.length = 0;
    world.upstream.answer = undefined;
  });
  return world;
}

/** Returns a proxy of an object that does not exist yet. */
function standIn<T extends object>(current: () => T | undefined): T {
  const now = (): T => {
    const made = current();
    if (made === undefined) throw new Error('This is made when the tests run: use it in a test or a hook.');
    return made;
  };
  return new Proxy({} as T, {
    get: (_, key) => {
      const made = now();
      const value = Reflect.get(made, key);
      // Bound, because private members of a class cannot be reached through a proxy.
      return typeof value === 'function' ? value.bind(made) : value;
    },
    set: (_, key, value) => Reflect.set(now(), key, value),
    has: (_, key) => Reflect.has(now(), key),
    ownKeys: () => Reflect.ownKeys(now()),
    getOwnPropertyDescriptor: (_, key) => Reflect.getOwnPropertyDescriptor(now(), key),
    getPrototypeOf: () => Reflect.getPrototypeOf(now()),
  });
}
