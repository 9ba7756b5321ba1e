/** The initial data of the sandbox: a small shop's issues, mail and payments. */

export type Issue = {
  number: number;
  title: string;
  body: string;
  state: 'open' | 'closed';
  labels: string[];
  author: string;
  created_at: string;
  updated_at: string;
};
export type Comment = { id: number; issue: number; author: string; text: string; created_at: string };
export type Mail = {
  id: string;
  folder: 'inbox' | 'sent';
  from: string;
  to: string[];
  cc: string[];
  subject: string;
  text: string;
  date: string;
};
/** Amounts are in the currency's smallest unit (cents), so that nothing is rounded. */
export type Payment = {
  id: string;
  customer: string;
  description: string;
  amount: number;
  refunded: number;
  currency: string;
  created_at: string;
};
export type Refund = {
  id: string;
  payment: string;
  amount: number;
  currency: string;
  reason: string;
  created_at: string;
};

export type World = {
  issues: Map<number, Issue>;
  comments: Comment[];
  mail: Map<string, Mail>;
  payments: Map<string, Payment>;
  refunds: Map<string, Refund>;
  /** The next number of a kind; numbers are never reused. */
  next(kind: 'issue' | 'comment' | 'mail' | 'refund'): number;
  /** The current time in RFC 3339 format. */
  now(): string;
};

/** Limit of each collection. */
export const MAX_PER_KIND = 1_000;

const HOUR = 3_600_000;

/** Initial data with dates in the days before `clock` (milliseconds since the Unix epoch). */
export function seedWorld(clock: () => number): World {
  const start = clock();
  const ago = (hours: number) => new Date(start - hours * HOUR).toISOString();
  const issues = ISSUES.map(([title, body, state, labels, author, hours], at): Issue => {
    return { number: at + 1, title, body, state, labels, author, created_at: ago(hours), updated_at: ago(hours / 2) };
  });
  const comments = COMMENTS.map(([issue, author, text, hours], at): Comment => {
    return { id: at + 1, issue, author, text, created_at: ago(hours) };
  });
  const mail = MAIL.map(([folder, from, to, subject, text, hours], at): Mail => {
    return { id: `msg_${at + 1}`, folder, from, to: [to], cc: [], subject, text, date: ago(hours) };
  });
  const payments = PAYMENTS.map(([customer, description, amount, refunded, hours], at): Payment => {
    const id = `pay_${1001 + at}`;
    return { id, customer, description, amount, refunded, currency: 'EUR', created_at: ago(hours) };
  });
  const refund = { id: 'ref_1', payment: 'pay_1003', amount: 1_500, currency: 'EUR', created_at: ago(30) };
  const refunds: Refund[] = [{ ...refund, reason: 'Parcel arrived a week late' }];
  const last = { issue: issues.length, comment: comments.length, mail: mail.length, refund: refunds.length };
  return {
    issues: new Map(issues.map((issue) => [issue.number, issue])),
    comments,
    mail: new Map(mail.map((message) => [message.id, message])),
    payments: new Map(payments.map((payment) => [payment.id, payment])),
    refunds: new Map(refunds.map((one) => [one.id, one])),
    next: (kind) => ++last[kind],
    now: () => new Date(clock()).toISOString(),
  };
}

type IssueSeed = [title: string, body: string, state: Issue['state'], labels: string[], author: string, hours: number];
const ISSUES: IssueSeed[] = [
  [
    'Checkout shows the wrong shipping cost for islands',
    'Sylt and Helgoland are charged as mainland.',
    'open',
    ['bug', 'checkout'],
    'mara',
    120,
  ],
  [
    'Password reset mail goes to spam at one provider',
    'Seen by three customers since the domain move.',
    'open',
    ['bug', 'mail'],
    'jonas',
    96,
  ],
  ['Show delivery dates before payment', 'Asked for by support about once a day.', 'open', ['feature'], 'support', 80],
  [
    'Duplicate invoice numbers after the night of the 3rd',
    'Two workers ran at once. Fixed by a lock.',
    'closed',
    ['bug', 'billing'],
    'mara',
    210,
  ],
  [
    'Product photos rotate on some phones',
    'The orientation tag is ignored when we resize.',
    'open',
    ['bug', 'good first issue'],
    'ines',
    52,
  ],
  [
    'Update the returns page for the new carrier',
    'New label format, 14 days instead of 10.',
    'closed',
    ['docs'],
    'support',
    168,
  ],
  [
    'Search finds nothing for words with umlauts',
    'Works for "Tuer", not for "Tür".',
    'open',
    ['bug', 'search'],
    'ines',
    20,
  ],
];

type CommentSeed = [issue: number, author: string, text: string, hours: number];
const COMMENTS: CommentSeed[] = [
  [1, 'jonas', 'The postcode table has not been updated since last year.', 100],
  [1, 'support', 'Two more customers today, both on Föhr.', 26],
  [4, 'mara', 'Released this morning, closing.', 180],
  [7, 'jonas', 'The index folds only ASCII. I can take this one.', 12],
];

type MailSeed = [folder: Mail['folder'], from: string, to: string, subject: string, text: string, hours: number];
const MAIL: MailSeed[] = [
  [
    'inbox',
    'paula@customer.example',
    'support@shop.example',
    'Where is my order 20417?',
    'Hello, the tracking page has shown nothing for five days. Can you look?',
    9,
  ],
  [
    'inbox',
    'omar@customer.example',
    'support@shop.example',
    'Charged twice',
    'My card was charged 129.00 EUR twice for the same lamp. Please refund one of them.',
    6,
  ],
  [
    'inbox',
    'news@supplier.example',
    'buying@shop.example',
    'Price list for the new season',
    'Please find our new prices below. They hold from the first of the month.',
    31,
  ],
  [
    'sent',
    'support@shop.example',
    'lena@customer.example',
    'Re: Parcel arrived late',
    'Dear Lena, we have refunded the shipping. Sorry for the wait.',
    29,
  ],
];

type PaymentSeed = [customer: string, description: string, amount: number, refunded: number, hours: number];
const PAYMENTS: PaymentSeed[] = [
  ['omar@customer.example', 'Desk lamp, brass', 12_900, 0, 50],
  ['omar@customer.example', 'Desk lamp, brass', 12_900, 0, 50],
  ['lena@customer.example', 'Two chairs, oak, with shipping', 34_500, 1_500, 220],
  ['paula@customer.example', 'Coffee grinder', 8_990, 0, 140],
  ['noah@customer.example', 'Gift card', 5_000, 0, 3],
];
