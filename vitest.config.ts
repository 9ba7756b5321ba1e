import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // Two workers: each test file starts real servers of its own, and a small machine is what most people have.
    maxWorkers: 2,
  },
});
