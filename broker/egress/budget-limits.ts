/** The limits of concurrent calls, and of their bodies and answers in memory (call-budget.ts). */
import { MEMORY_SHARE } from '../runtime/memory-share.ts';

const MIB = 1024 * 1024;

/** `calls`: concurrent calls; `bytes`: of request bodies, and of answers that are read but not yet written to the client. */
export type BudgetShare = { calls: number; bytes: number };
/**
 * `reserve`: beyond `all`, for organisations that use less than a family may: the agents of one organisation, and platforms that hang, must not stop the
 * calls of the others.
 */
export type BudgetLimits = { family: BudgetShare; all: BudgetShare; reserve: BudgetShare };

export const BUDGET: BudgetLimits = {
  family: { calls: 16, bytes: 32 * MIB },
  all: { calls: 256, bytes: 128 * MIB },
  reserve: { calls: 64, bytes: 32 * MIB },
};

/**
 * Multiplies all limits, for load tests; factors below one are ignored, because a call needs a slot. Limits of bytes are less where the process has
 * little memory.
 */
export function budgetOf(factor: number, memory = MEMORY_SHARE): BudgetLimits {
  const share = ({ calls, bytes }: BudgetShare) => ({
    calls: calls * Math.max(1, factor),
    bytes: bytes * Math.max(1, factor) * memory,
  });
  return { family: share(BUDGET.family), all: share(BUDGET.all), reserve: share(BUDGET.reserve) };
}
