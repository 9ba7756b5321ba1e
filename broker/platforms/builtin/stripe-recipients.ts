/**
 * Recipients of Stripe calls: people by mail, and whoever receives money, by the id of an account, a bank account, a financial account or a payment method. Names of members from
 * the types of Stripe's own clients.
 */
import type { ManifestInput } from '../manifest.ts';

const optional = (pointer: string) => ({ pointer, optional: true });
const id = (pointer: string) => ({ pointer, format: 'id' as const });
const optionalId = (pointer: string) => ({ ...id(pointer), optional: true });

/** A connected account that receives the money of a payment ("Create destination charges"). */
const passedOn = optionalId('/transfer_data/destination');
const ofPayment = [optional('/receipt_email'), passedOn];
/** The first payment, or all payments of a subscription, that a payment page collects. */
const ofPage = [
  optional('/payment_intent_data/receipt_email'),
  optionalId('/payment_intent_data/transfer_data/destination'),
  optionalId('/subscription_data/transfer_data/destination'),
];
/** Each phase must name a destination: a phase without one may keep the subscription's previous destination. */
const ofSchedule = ['/default_settings', '/phases/*'].map((at) => optionalId(`${at}/transfer_data/destination`));

export const stripeRecipients = {
  // `destination` is the name of `transfer_data` in earlier versions, which an agent may choose.
  'POST /v1/charges': [...ofPayment, optionalId('/destination')],
  'POST /v1/charges/*': [optional('/receipt_email')],
  'POST /v1/charges/*/capture': [optional('/receipt_email')],
  'POST /v1/payment_intents': ofPayment,
  'POST /v1/payment_intents/*': ofPayment,
  'POST /v1/payment_intents/*/confirm': [optional('/receipt_email')],
  'POST /v1/refunds': [optional('/instructions_email')],
  'POST /v1/customers': [optional('/email')],
  'POST /v1/customers/*': [optional('/email')],
  'POST /v1/checkout/sessions': [optional('/customer_email'), ...ofPage],
  'POST /v1/payment_links': ofPage,
  'POST /v1/payment_links/*': ofPage,
  'POST /v1/subscriptions': [passedOn],
  'POST /v1/subscriptions/*': [passedOn],
  'POST /v1/subscription_schedules': ofSchedule,
  'POST /v1/subscription_schedules/*': ofSchedule,
  'POST /v1/invoices': [passedOn],
  'POST /v1/invoices/*': [passedOn],
  // Sent to the customer's address, which the call does not name: refused under a recipient constraint.
  'POST /v1/invoices/*/send': ['/to'],
  'POST /v1/quotes': [passedOn],
  'POST /v1/quotes/*': [passedOn],
  'POST /v1/transfers': [id('/destination')],
  // Without a destination, the money goes to the account's own bank account.
  'POST /v1/payouts': [optionalId('/destination'), optionalId('/payout_method')],
  // Financial accounts that automatically receive the balance, by currency.
  'POST /v1/balance_settings': [optionalId('/payments/payouts/automatic_transfer_rules_by_currency/*/*/payout_method')],
  // May also go to a bank account that only the call describes, and that has no id: refused under a recipient constraint.
  'POST /v1/treasury/outbound_payments': [
    id('/destination_payment_method'),
    optionalId('/destination_payment_method_data'),
  ],
  'POST /v1/treasury/outbound_transfers': [
    optionalId('/destination_payment_method'),
    optionalId('/destination_payment_method_data'),
  ],
} satisfies ManifestInput['recipients'];
