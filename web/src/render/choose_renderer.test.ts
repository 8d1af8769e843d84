import assert from 'node:assert/strict';
import test from 'node:test';
import {choiceFromQuery, isSoftwareGl} from './choose_renderer';

test('drivers that rasterize on the CPU are known by name', () => {
  for (const name of [
    'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero)), SwiftShader driver)',
    'llvmpipe (LLVM 15.0.6, 256 bits)',
    'ANGLE (Microsoft, Microsoft Basic Render Driver Direct3D11)',
  ]) {
    assert.ok(isSoftwareGl(name), name);
  }
  for (const name of [
    'ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 Direct3D11)',
    'Apple M2',
    'Mesa Intel(R) UHD Graphics 620 (KBL GT2)',
    'AMD Radeon RX 7800 XT (radeonsi, navi32, LLVM 17.0.6)',
  ]) {
    assert.ok(!isSoftwareGl(name), name);
  }
});

test('the address can decide', () => {
  assert.equal(choiceFromQuery('?renderer=cpu'), 'cpu');
  assert.equal(choiceFromQuery('?v=1,2&renderer=webgl'), 'webgl');
  assert.equal(choiceFromQuery('?renderer=other'), 'auto');
  assert.equal(choiceFromQuery(''), 'auto');
});
