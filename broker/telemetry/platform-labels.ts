/** Platforms as values of a label. */

/** A label with more values than that costs whoever stores the metrics more than it tells. */
const MOST = 100;

export const OTHER = 'other';

export type PlatformLabels = {
  /** Says that a platform of this id exists. What agents write is no label before that. */
  know(id: string): void;
  /** The label of a platform that may not exist. */
  of(id: string | null | undefined): string;
};

export function platformLabels(): PlatformLabels {
  const known = new Set<string>();
  return {
    know: (id) => {
      if (known.size < MOST) known.add(id);
    },
    of: (id) => (id && known.has(id) ? id : OTHER),
  };
}
