import { test } from 'vitest'
import { backendConformance } from '../conformance/index.ts'
import { memory } from './index.ts'

backendConformance({ name: 'memory', test, open: async () => memory() })
