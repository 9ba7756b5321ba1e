/** What a manifest says of single operations, by the most specific entry. */
import type { CallAsk } from './call-ask.ts';
import type { Operation } from './platform-rules.ts';

/** Undefined: no entry names the call. Byte for byte: another spelling gets no more. */
export function entryFor<Entry extends { operation: Operation }>(
  entries: readonly Entry[],
  call: Pick<CallAsk, 'method' | 'path'>,
): Entry | undefined {
  let found: { entry: Entry; specificity: number } | undefined;
  for (const entry of entries) {
    const { operation } = entry;
    if (operation.kind !== 'http' || operation.method !== call.method || !operation.path.matches(call.path)) continue;
    const { specificity } = operation.path;
    if (found === undefined || specificity > found.specificity) found = { entry, specificity };
  }
  return found?.entry;
}
