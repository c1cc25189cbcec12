import fc from 'fast-check'

// Properties run on the same inputs every time, so that a failure belongs to the change that caused it.
// FUZZ_SEED=N (or =random) looks elsewhere.
const { FUZZ_SEED = '20260701' } = process.env
if (FUZZ_SEED !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(FUZZ_SEED) })
