/** Amounts of money: formatted only with a currency that was read and whose minor unit is known. */
import type { JsonValue } from '../../json/json-value.ts';

/**
 * ISO 4217, list one (2026-01-01). The digits in Node's Intl come from CLDR and are those of cash: it has 0 for IQD, LBP or COP, whose minor units are 3, 2
 * and 2. Codes for tests, metals, funds or none (XTS, XAU, XXX …) are omitted.
 */
const DIGITS: ReadonlyMap<string, number> = new Map([
  ...codes(0, 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF'),
  ...codes(3, 'BHD IQD JOD KWD LYD OMR TND'),
  ...codes(
    2,
    `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC CUP CVE CZK DKK
    DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK
    LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR
    RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED
    VES WST XCD XCG YER ZAR ZMW ZWG`,
  ),
]);

/** Currencies that a platform counts in another minor unit than that of ISO 4217; null: its documentation leaves it open. */
export type MinorUnits = Readonly<Record<string, number | null>>;

/** How an amount is written: in minor units (`minor`: 4500 is 45.00 EUR), or as a decimal number (`decimal`: 45 is 45.00 EUR). */
export type AmountForm = 'minor' | 'decimal';

/** `{ amount: '45.00 EUR' }`; `{ number, lacking }` when its currency or unit is unknown; or that it cannot be read at all. */
export type ReadAmount = { amount: string } | { number: string; lacking: string } | 'unreadable';

const WHOLE = /^-?(?:0|[1-9][0-9]{0,14})$/;
const DECIMAL = /^-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,6})?$/;

/** Formats an amount with its currency, as given in the request. `shown`: makes the code of an unknown currency readable. */
export function readAmount(
  amount: JsonValue,
  currency: JsonValue | undefined,
  { form, minorUnits }: { form: AmountForm; minorUnits: MinorUnits },
  shown: (text: string) => string,
): ReadAmount {
  const number = typeof amount === 'number' ? String(amount) : amount;
  if (typeof number !== 'string' || !(form === 'minor' ? WHOLE : DECIMAL).test(number)) return 'unreadable';
  if (currency === undefined || currency === null || currency === '') return { number, lacking: 'no currency given' };
  if (typeof currency !== 'string') return { number, lacking: 'its currency cannot be read' };
  const code = currency.toUpperCase();
  // `toUpperCase` maps some non-ASCII letters to ASCII.
  if (!/^[A-Za-z]{3}$/.test(currency) || !DIGITS.has(code))
    return { number, lacking: `“${shown(currency)}” is not a known currency` };
  const digits = Object.hasOwn(minorUnits, code) ? minorUnits[code] : DIGITS.get(code);
  if (typeof digits !== 'number') return { number, lacking: `in a unit of ${code} that is not known` };
  const text = form === 'minor' ? fromMinor(number, digits) : withDigits(number, digits);
  return text === undefined ? 'unreadable' : { amount: `${text} ${code}` };
}

/** Formats minor units: `4500` with two digits is `45.00`. */
function fromMinor(number: string, digits: number): string {
  const sign = number.startsWith('-') ? '-' : '';
  const figures = number.slice(sign.length).padStart(digits + 1, '0');
  const at = figures.length - digits;
  return `${sign}${grouped(figures.slice(0, at))}${digits === 0 ? '' : `.${figures.slice(at)}`}`;
}

/** Formats a decimal number: `45.5` with two digits is `45.50`; undefined when it has more decimals than the currency. */
function withDigits(number: string, digits: number): string | undefined {
  const [whole = '', fraction = ''] = number.split('.');
  const kept = fraction.replace(/0+$/, '');
  if (kept.length > digits) return undefined;
  const sign = whole.startsWith('-') ? '-' : '';
  return `${sign}${grouped(whole.slice(sign.length))}${digits === 0 ? '' : `.${kept.padEnd(digits, '0')}`}`;
}

const grouped = (figures: string): string => figures.replace(/\B(?=(?:[0-9]{3})+$)/g, ',');

function codes(digits: number, text: string): [string, number][] {
  return text.split(/\s+/).map((code) => [code, digits]);
}
