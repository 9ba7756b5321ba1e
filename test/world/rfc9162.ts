/** Merkle trees as RFC 9162 defines them, independent of the broker's code. */
import { createHash } from 'node:crypto';

export const sha256 = (...parts: Uint8Array[]) =>
  parts.reduce((h, part) => h.update(part), createHash('sha256')).digest();

/** Returns the leaf hash for the `row_hash` of a row. */
export const leafOf = (rowHash: string): Buffer => sha256(Buffer.from([0]), Buffer.from(rowHash, 'hex'));

/** RFC 9162 section 2.1.1, literally, with memoised hashes. `end`: after the last leaf. */
export function mth(
  leaves: readonly Uint8Array[],
  end = leaves.length,
  start = 0,
  known = new Map<string, Buffer>(),
): Buffer {
  if (end === start) return sha256();
  if (end - start === 1) return Buffer.from(leaves[start]!);
  const before = known.get(`${start} ${end}`);
  if (before) return before;
  let k = 1;
  while (k * 2 < end - start) k *= 2;
  const made = sha256(Buffer.from([1]), mth(leaves, start + k, start, known), mth(leaves, end, start + k, known));
  if (end - start > 64) known.set(`${start} ${end}`, made);
  return made;
}

/** RFC 9162 section 2.1.3.2. */
export function includes(
  root: Uint8Array,
  leaf: Uint8Array,
  index: number,
  size: number,
  proof: readonly Uint8Array[],
) {
  let [fn, sn, r] = [index, size - 1, Buffer.from(leaf)];
  for (const p of proof) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      r = sha256(Buffer.from([1]), p, r);
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
    } else r = sha256(Buffer.from([1]), r, p);
    [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  }
  return sn === 0 && r.equals(root);
}

/** RFC 9162 section 2.1.4.2. */
export function isConsistent(
  first: number,
  second: number,
  firstRoot: Uint8Array,
  secondRoot: Uint8Array,
  given: readonly Uint8Array[],
) {
  if (first === second) return given.length === 0 && Buffer.from(firstRoot).equals(secondRoot);
  const proof = Number.isInteger(Math.log2(first)) ? [firstRoot, ...given] : [...given];
  let [fn, sn] = [first - 1, second - 1];
  while (fn % 2 === 1) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  let [fr, sr] = [Buffer.from(proof[0]!), Buffer.from(proof[0]!)];
  for (const c of proof.slice(1)) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      fr = sha256(Buffer.from([1]), c, fr);
      sr = sha256(Buffer.from([1]), c, sr);
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
    } else sr = sha256(Buffer.from([1]), sr, c);
    [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  }
  return sn === 0 && fr.equals(firstRoot) && sr.equals(secondRoot);
}
