"""What is given to tensile.join that cannot be planned for: one line says so, and the script trains to its own bits."""

import unittest

import scripts
import test_link

JOIN = "tensile.join(model, optimizer)"
SCRIPT = test_link.SCRIPT.replace(JOIN, JOIN + "\ntorch.manual_seed(2)")


class Join(test_link.Sidecar):
    def test_odd(self):
        alone, _ = self.run_script(script=SCRIPT)
        cases = (
                ("torch.nn.ReLU(), optimizer", "the model, a ReLU, has no parameters: join the one", ""),
                ("torch.nn.Linear(2, 2), optimizer", "the optimizer trains none of the model's parameters: make it of",
                 ""),
                ("optimizer, model", r"say tensile.join\(model, optimizer\)", ""),
                ("None, optimizer", "has a NoneType as its model: give it a torch.nn.Module", ""),
                ("list(model.parameters()), optimizer", "has a list as its model", ""),
                ("model, 'adam'", "has a str as its optimizer: give it the torch.optim.Optimizer", ""),
                ("model, schedule", "has a StepLR as its optimizer",
                 "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 9)"),
                ("torch.nn.Sequential(model, torch.nn.LazyLinear(3)), optimizer", "run it once on a batch before", ""),
                ("torch.nn.Sequential(model, torch.nn.Linear(2, 2, device='meta')), optimizer",
                 "parameters are on cpu, meta: join a model that is on one device", ""))
        for arguments, want, more in cases if scripts.LONG else cases[:1]:
            with self.subTest(arguments=arguments):
                script = SCRIPT.replace(JOIN, f"import warnings; warnings.simplefilter('ignore')\n{more}\n"
                                        f"tensile.join({arguments})")
                done, said = self.run_script(lambda kind, body: [], script)
                self.assertEqual((done.returncode, done.stdout), (0, alone.stdout), done.stderr)
                self.assertRegex(done.stderr, rf"\Atensile: passive from now on: [^\n]*{want}[^\n]*\n\Z")
                self.assertEqual([k for k, _ in said], ["hello", "passive", "end"])
                self.assertTrue(said[1][1]["always"])

    @scripts.long
    def test_without_a_sidecar(self):
        odd = "for odd in None, 'adam', torch.nn.ReLU():\n    tensile.join(odd, optimizer)\n    tensile.join(model, odd)"
        done, _ = self.run_script(script=SCRIPT.replace(JOIN, odd))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 6, done.stderr)
        self.assertEqual(done.stderr.count("there is no sidecar"), 6)

    @scripts.long
    def test_twice(self):
        alone, _ = self.run_script(script=SCRIPT)
        done, said = self.run_script(test_link.greeting(lambda kind, body: []), SCRIPT.replace(JOIN, f"{JOIN}\n{JOIN}"))
        self.assertEqual((done.returncode, done.stdout), (0, alone.stdout), done.stderr)
        self.assertRegex(done.stderr, r"\Atensile: joined already: [^\n]*join once[^\n]*\n\Z")
        self.assertEqual([k for k, _ in said].count("hello"), 1)


if __name__ == "__main__":
    unittest.main()
