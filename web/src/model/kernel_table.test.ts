import assert from 'node:assert/strict';
import {test} from 'node:test';
import {kernelsShape} from '../api/types';
import {setTestWords} from '../base/testing/words';
import {formatSort, parseSort, pressSort, selectRows, tensorCoreWord} from './kernel_table';

setTestWords();

const {kernels} = kernelsShape(
  {
    total: 3,
    kernels: [
      {
        name: 'volta_sgemm',
        short: 'sgemm',
        family: 'gemm',
        count: 3,
        total_ns: 30,
        tensor_core: false,
      },
      {
        name: 'ampere_hgemm',
        short: 'hgemm',
        family: 'gemm',
        count: 1,
        total_ns: 90,
        tensor_core: true,
      },
      {name: 'bn_fw', short: '', family: 'norm', count: 9, total_ns: 30, tensor_core: null},
    ],
  },
  '',
);
const names = (rows: readonly {name: string}[]): string => rows.map(r => r.name).join(' ');

test('rows by total, ties in a stable order', () => {
  assert.equal(
    names(selectRows(kernels, '', parseSort('total'))),
    'ampere_hgemm volta_sgemm bn_fw',
  );
  assert.equal(
    names(selectRows(kernels, '', parseSort('-count'))),
    'ampere_hgemm volta_sgemm bn_fw',
  );
  assert.equal(
    names(selectRows(kernels, '', parseSort('-name'))),
    'bn_fw ampere_hgemm volta_sgemm',
  );
});

test('the filter looks at names and kinds', () => {
  assert.equal(names(selectRows(kernels, 'GEMM volta', parseSort('total'))), 'volta_sgemm');
  assert.equal(
    names(selectRows(kernels, 'families gemm', parseSort('total'))),
    'ampere_hgemm volta_sgemm',
  );
  assert.equal(names(selectRows(kernels, 'nothing', parseSort('total'))), '');
});

test('pressing a head again turns the order around', () => {
  const sort = pressSort(parseSort('total'), 'count');
  assert.equal(formatSort(sort), 'count');
  assert.equal(formatSort(pressSort(sort, 'count')), '-count');
  assert.equal(formatSort(pressSort(sort, 'name')), '-name');
  assert.equal(formatSort(parseSort('nonsense')), 'total');
});

test('unknown is not "no tensor core"', () => {
  assert.deepEqual(
    kernels.map(k => tensorCoreWord(k.tensor_core)),
    ['no', 'yes', ''],
  );
});
