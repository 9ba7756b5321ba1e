/** Labels of agents: short words by which owners group them, and which conditions may read. */
import { z } from 'zod';

const MAX_LABELS = 10;

/** Normalises a label: letter case is ignored, here and in conditions. */
export const foldLabel = (text: string): string => text.normalize('NFC').toLowerCase();

const Label = z
  .string()
  .trim()
  .overwrite(foldLabel)
  .min(1, 'is empty')
  .max(40, 'has more than 40 characters')
  .regex(/^[\p{L}\p{N}][\p{L}\p{M}\p{N} ._:/-]*$/u, 'write letters, digits, spaces and . _ : / - only');

/** Labels as owners write them; letter case is ignored. */
export const Labels = z
  .array(Label)
  .max(MAX_LABELS, `are more than ${MAX_LABELS}`)
  .describe(
    'Words by which agents are grouped, such as "prod" or "team:billing"; conditions read them as agent.labels.',
  );

/** Returns each label once, in alphabetical order. */
export const inOrder = (labels: readonly string[]): string[] => [...new Set(labels)].toSorted();

/** Returns labels in the form of the store; null for none. */
export const storedLabels = (labels: readonly string[]): string | null =>
  labels.length === 0 ? null : JSON.stringify(inOrder(labels));
