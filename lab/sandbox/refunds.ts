/** /payments and /refunds. A payment is never refunded beyond what was paid. */
import { z } from 'zod';
import { full, notFound, PAGING, pageOf, problem, type Route, route } from './route.ts';
import { MAX_PER_KIND, type Payment, type Refund, type World } from './world.ts';

const ListQuery = z.strictObject(PAGING);
const NewRefund = z.strictObject({
  payment: z.string().regex(/^pay_[0-9]{1,9}$/, 'must be a payment id such as pay_1001'),
  amount: z
    .number()
    .int('must be a whole number of cents')
    .min(1, 'must be at least 1 cent')
    .max(100_000_000, 'must be at most 100000000 cents'),
  currency: z.string().optional(),
  reason: z.string().trim().min(3).max(500),
});

/** The routes of payments and refunds. Amounts are whole cents. */
export function refundRoutes(world: World): Route[] {
  return [
    route({
      method: 'GET',
      path: '/payments',
      query: ListQuery,
      handle: ({ query }) => pageOf([...world.payments.values()].map(withStatus), query),
    }),
    route({
      method: 'GET',
      path: '/refunds',
      query: ListQuery,
      handle: ({ query }) => pageOf([...world.refunds.values()].reverse(), query),
    }),
    route({
      method: 'GET',
      path: '/refunds/{id}',
      handle({ params: [id = ''] }) {
        const refund = world.refunds.get(id);
        return refund ? { status: 200, body: refund } : notFound(`refund ${JSON.stringify(id.slice(0, 40))}`);
      },
    }),
    route({
      method: 'POST',
      path: '/refunds',
      body: NewRefund,
      handle({ body }) {
        const payment = world.payments.get(body.payment);
        if (!payment) return notFound(`payment ${body.payment}`);
        if (body.currency !== undefined && body.currency !== payment.currency)
          return problem(409, 'currency_differs', `${payment.id} was paid in ${payment.currency}.`);
        const left = payment.amount - payment.refunded;
        if (body.amount > left) {
          const told = `${payment.id} has ${left} of ${payment.amount} cents left to refund; ${body.amount} were requested.`;
          return problem(409, 'refund_exceeds_payment', told);
        }
        if (world.refunds.size >= MAX_PER_KIND) return full('refunds', MAX_PER_KIND);
        const made = { currency: payment.currency, reason: body.reason, created_at: world.now() };
        const refund: Refund = { id: `ref_${world.next('refund')}`, payment: payment.id, amount: body.amount, ...made };
        payment.refunded += refund.amount;
        world.refunds.set(refund.id, refund);
        return { status: 201, body: refund, headers: { location: `/refunds/${refund.id}` } };
      },
    }),
  ];
}

function withStatus(payment: Payment): Payment & { status: 'paid' | 'partly_refunded' | 'refunded' } {
  if (payment.refunded === 0) return { ...payment, status: 'paid' };
  return { ...payment, status: payment.refunded < payment.amount ? 'partly_refunded' : 'refunded' };
}
