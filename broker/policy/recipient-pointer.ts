/** Recipient pointers, as a manifest writes them. */
import type { RecipientPointer, RecipientPointerSource } from './platform-rules.ts';
import { POINTER } from './pointer.ts';

/** @throws Error with a sentence that names the operation and describes what to write */
export function compileRecipientPointer(source: RecipientPointerSource, operation: string): RecipientPointer {
  const {
    pointer: text,
    format,
    optional,
  }: Exclude<RecipientPointerSource, string> = typeof source === 'string' ? { pointer: source } : source;
  if (!POINTER.test(text)) {
    throw new Error(
      `recipients "${operation}": "${text}" is not a JSON pointer; write "/to", or "/cc/*" for each of a list`,
    );
  }
  return { pointer: text, ...(format && { format }), ...(optional && { optional }) };
}
