/** Storage of a test's `oidc-provider`: keeps everything, where the package's own memory evicts the oldest of a thousand entries. */

type Payload = { exp?: number; grantId?: string; uid?: string; userCode?: string; consumed?: unknown };

/** Returns the `adapter` of its configuration. */
export function tokenMemory() {
  const kept = new Map<string, { payload: Payload; until: number }>();
  return (model: string) => {
    const keyOf = (id: string) => `${model}:${id}`;
    const find = async (id: string): Promise<Payload | undefined> => {
      const found = kept.get(keyOf(id));
      if (found && found.until > Date.now()) return found.payload;
      kept.delete(keyOf(id));
      return undefined;
    };
    const findBy = async (matches: (payload: Payload) => boolean): Promise<Payload | undefined> =>
      [...kept].find(([key, { payload }]) => key.startsWith(`${model}:`) && matches(payload))?.[1].payload;
    return {
      upsert: async (id: string, payload: Payload, expiresIn: number | undefined) => {
        const until = expiresIn === undefined ? Number.POSITIVE_INFINITY : Date.now() + expiresIn * 1000;
        kept.set(keyOf(id), { payload, until });
      },
      find,
      findByUid: (uid: string) => findBy((payload) => payload.uid === uid),
      findByUserCode: (code: string) => findBy((payload) => payload.userCode === code),
      consume: async (id: string) => {
        const payload = await find(id);
        if (payload) payload.consumed = Math.floor(Date.now() / 1000);
      },
      destroy: async (id: string) => void kept.delete(keyOf(id)),
      revokeByGrantId: async (grantId: string) => {
        for (const [key, { payload }] of kept) if (payload.grantId === grantId) kept.delete(key);
      },
    };
  };
}
