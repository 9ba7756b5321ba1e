// Sums of the amounts in a group of calls, by currency. An amount whose currency is unknown is not summed.
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */

/** An amount as a sentence writes it: `1,234.50 EUR`. */
const AMOUNT = /^(-?)([0-9]{1,3}(?:,[0-9]{3})*)(?:\.([0-9]+))? ([A-Z]{3})$/;

/** An amount in the smallest unit that was written, so that sums are exact. @typedef {{ currency: string, digits: number, units: bigint }} Money */

/**
 * Returns the one amount in the sentence of a call; undefined when there is none, several, or an uncertain one.
 *
 * @param {CallEntry} entry
 * @returns {Money | undefined}
 */
function amountOf({ item: { sentence } }) {
  const found = sentence.parts.filter((part) => 'value' in part && part.amount);
  const [only] = found;
  if (found.length !== 1 || !only || !('value' in only)) return undefined;
  const [, sign, whole, fraction = '', currency] = AMOUNT.exec(only.value) ?? [];
  if (whole === undefined || currency === undefined) return undefined;
  return { currency, digits: fraction.length, units: BigInt(`${sign}${whole.replaceAll(',', '')}${fraction}`) };
}

/**
 * Formats an amount as sentences do.
 *
 * @param {bigint} units
 * @param {number} digits
 */
function written(units, digits) {
  const figures = String(units < 0n ? -units : units).padStart(digits + 1, '0');
  const whole = figures.slice(0, figures.length - digits).replace(/\B(?=(?:[0-9]{3})+$)/g, ',');
  return `${units < 0n ? '-' : ''}${whole}${digits > 0 ? `.${figures.slice(-digits)}` : ''}`;
}

/**
 * Returns `350.00–8,400.00 EUR, 61,200.00 EUR in all`, one part per currency, and how many calls are in no sum; empty when no amount was found.
 *
 * @param {readonly CallEntry[]} entries
 */
export function formatSums(entries) {
  /** @type {Map<string, Money[]>} */
  const byCurrency = new Map();
  let without = 0;
  for (const entry of entries) {
    const money = amountOf(entry);
    if (!money) without++;
    // A platform may count a currency in another unit: amounts with different numbers of decimals are never added.
    else
      byCurrency.set(`${money.currency} ${money.digits}`, [
        ...(byCurrency.get(`${money.currency} ${money.digits}`) ?? []),
        money,
      ]);
  }
  if (byCurrency.size === 0) return '';
  const sums = [...byCurrency.values()].map((some) => ofOneCurrency(some)).sort();
  return `${sums.join('; ')}${without > 0 ? `; ${without} without an amount that was read` : ''}`;
}

/** @param {readonly Money[]} some at least one */
function ofOneCurrency(some) {
  const { currency = '', digits = 0 } = some[0] ?? {};
  const units = some.map((one) => one.units).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const [least = 0n, most = 0n] = [units[0], units.at(-1)];
  const total = units.reduce((sum, one) => sum + one, 0n);
  if (some.length === 1) return `${written(least, digits)} ${currency}`;
  const range =
    least === most
      ? `${some.length} × ${written(least, digits)}`
      : `${written(least, digits)}–${written(most, digits)}`;
  return `${range} ${currency}, ${written(total, digits)} ${currency} in all`;
}
